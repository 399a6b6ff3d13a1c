//! A function service: the Invoke API for clients, and the Runtime API for workers.

use std::collections::HashMap;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Options;
use crate::http::{Answer, Request, Service, Sink};
use crate::process::{Starter, describe_exit, kill, memory_mib};

/// How often the memory of workers is checked.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum payloads of asynchronous invocations and of others.
const EVENT_BYTES_MAX: u64 = 1 << 20;
const PAYLOAD_BYTES_MAX: u64 = 6 << 20;

/// Process numbers of a worker that is being started, and of one that has ended.
const STARTING: i32 = -1;
const ENDED: i32 = 0;

/// The function service.
#[derive(Debug)]
pub(crate) struct Functions {
    options: Options,
    settings: Vec<(String, String)>,
    address: OnceLock<String>,
    starter: Starter,
    state: Mutex<State>,
    /// Signals a change of a worker.
    worker_changed: Condvar,
    weak_self: Weak<Functions>,
    invocations: AtomicU64,
    mebibyte_milliseconds: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    workers: HashMap<u64, Worker>,
    next: u64,
    running: usize,
    ended: bool,
}

/// A worker's process.
#[derive(Debug)]
struct Worker {
    process: i32,
    /// Whether it waits for an invocation.
    idle: bool,
    invocation: Option<Invocation>,
    out_of_memory: Option<u64>,
}

/// An invocation that waits for its worker, runs, or has ended.
#[derive(Debug)]
struct Invocation {
    id: String,
    payload: Option<Vec<u8>>,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
enum Outcome {
    Answered(Vec<u8>),
    Failed { kind: &'static str, message: String },
}

/// Whether an invocation is asynchronous: the caller does not read its answer.
fn is_event(request: &Request) -> bool {
    request.header("x-amz-invocation-type") == Some("Event")
}

/// Returns an error in the service's format.
fn error(status: u16, kind: &str, message: &str) -> Answer {
    let body = json!({"Type": "User", "message": message}).to_string();
    Answer::new(status, body)
        .with("x-amzn-ErrorType", kind)
        .with("Content-Type", "application/json")
}

impl Functions {
    /// Returns the service; workers see `settings` and the environment.
    pub(crate) fn new(
        options: Options,
        settings: Vec<(String, String)>,
    ) -> io::Result<Arc<Functions>> {
        let starter = Starter::new()?;
        let functions = Arc::new_cyclic(|weak_self| Functions {
            options,
            settings,
            address: OnceLock::new(),
            starter,
            state: Mutex::default(),
            worker_changed: Condvar::new(),
            weak_self: weak_self.clone(),
            invocations: AtomicU64::new(0),
            mebibyte_milliseconds: AtomicU64::new(0),
        });
        let watched = Arc::downgrade(&functions);
        std::thread::Builder::new().name("memory".to_string()).spawn(move || {
            while let Some(functions) =
                watched.upgrade().filter(|functions| functions.check_memory())
            {
                drop(functions);
                std::thread::sleep(MEMORY_POLL_INTERVAL);
            }
        })?;
        Ok(functions)
    }

    pub(crate) fn set_address(&self, address: &str) {
        drop(self.address.set(address.to_string()));
    }

    /// The number of workers that wait for an invocation.
    pub(crate) fn idle_workers(&self) -> usize {
        self.lock().workers.values().filter(|worker| worker.idle).count()
    }

    pub(crate) fn billed(&self) -> (u64, u64) {
        (
            self.invocations.load(Ordering::Relaxed),
            self.mebibyte_milliseconds.load(Ordering::Relaxed),
        )
    }

    /// Adds a worker without a process that has this invocation, and marks the service as ended so
    /// that no request waits.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn add_fake_worker(&self, id: &str, payload: &[u8]) {
        let invocation =
            Invocation { id: id.to_string(), payload: Some(payload.to_vec()), outcome: None };
        let worker = Worker {
            process: STARTING,
            idle: false,
            invocation: Some(invocation),
            out_of_memory: None,
        };
        let mut state = self.lock();
        state.workers.insert(1, worker);
        state.ended = true;
    }

    /// Ends all workers.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.workers.values().for_each(|worker| kill(worker.process));
        self.worker_changed.notify_all();
        // Waits until the processes are gone, so that callers do not find them afterwards.
        let until = Instant::now() + Duration::from_secs(2);
        while !state.workers.is_empty() && Instant::now() < until {
            state = self.wait(state, MEMORY_POLL_INTERVAL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, at_most: Duration) -> MutexGuard<'a, State> {
        self.worker_changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Kills workers that use too much memory; returns whether the service is still running.
    fn check_memory(&self) -> bool {
        let mut state = self.lock();
        for worker in state.workers.values_mut().filter(|worker| worker.invocation.is_some()) {
            let taken = memory_mib(worker.process);
            if taken > self.options.memory_mib && worker.out_of_memory.is_none() {
                worker.out_of_memory = Some(taken);
                kill(worker.process);
            }
        }
        !state.ended
    }

    /// Starts a worker's process for an invocation and a thread that waits for its end.
    fn start_worker(&self, name: &str, invocation: Invocation) -> io::Result<u64> {
        let address = self.address.get().cloned().unwrap_or_default();
        let number = {
            let mut state = self.lock();
            state.next += 1;
            let number = state.next;
            // The worker is added before its process runs, since it requests its invocation at
            // once.
            let worker = Worker {
                process: STARTING,
                idle: false,
                invocation: Some(invocation),
                out_of_memory: None,
            };
            state.workers.insert(number, worker);
            number
        };
        let mut command = Command::new(&self.options.program);
        let host = address.trim_start_matches("http://");
        command
            .args(&self.options.arguments)
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .env("AWS_ENDPOINT_URL_LAMBDA", &address)
            .env("AWS_LAMBDA_RUNTIME_API", format!("{host}/worker/{number}"))
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", self.options.memory_mib.to_string());
        let started = self.starter.start(command);
        let mut state = self.lock();
        let mut child = started.inspect_err(|_| drop(state.workers.remove(&number)))?;
        let process = child.id() as i32;
        if state.ended {
            kill(process);
        }
        if let Some(worker) = state.workers.get_mut(&number) {
            worker.process = process;
        }
        drop(state);
        let weak_self = self.weak_self.clone();
        let watch = move || {
            let status = child.wait();
            let Some(functions) = weak_self.upgrade() else { return };
            let mut state = functions.lock();
            let Some(mut worker) = state.workers.remove(&number) else { return };
            let how = status.map_or_else(|error| error.to_string(), describe_exit);
            let (kind, message) = match worker.out_of_memory {
                Some(taken) => {
                    let limit = functions.options.memory_mib;
                    ("Runtime.OutOfMemory", format!("it used {taken} MiB of {limit} MiB"))
                }
                None => ("Runtime.ExitError", how),
            };
            if let Some(invocation) = &mut worker.invocation {
                invocation.outcome.get_or_insert(Outcome::Failed { kind, message });
                // The caller of the invocation removes the worker.
                let gone = Worker { process: ENDED, idle: false, ..worker };
                state.workers.insert(number, gone);
            }
            drop(state);
            functions.worker_changed.notify_all();
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(watch)?;
        Ok(number)
    }

    /// Runs an invocation to its end and counts what it costs.
    fn invoke(&self, name: &str, payload: &[u8]) -> Outcome {
        let id = format!("{:08x}", self.invocations.fetch_add(1, Ordering::Relaxed) + 1);
        let invocation = Invocation { id, payload: Some(payload.to_vec()), outcome: None };
        let mut state = self.lock();
        let number = match state.workers.iter_mut().find(|(_, worker)| worker.idle) {
            Some((number, worker)) => {
                (worker.idle, worker.invocation) = (false, Some(invocation));
                *number
            }
            None => {
                drop(state);
                std::thread::sleep(self.options.cold_start);
                let started = self.start_worker(name, invocation);
                state = self.lock();
                match started {
                    Ok(number) => number,
                    Err(error) => {
                        let message =
                            format!("cannot start '{}': {error}", self.options.program.display());
                        return Outcome::Failed { kind: "Runtime.InvalidEntrypoint", message };
                    }
                }
            }
        };
        let (started, until) = (Instant::now(), Instant::now() + self.options.timeout);
        self.worker_changed.notify_all();
        let outcome = loop {
            let Some(worker) = state.workers.get_mut(&number) else {
                break Outcome::Failed {
                    kind: "Runtime.ExitError",
                    message: "Runtime exited".to_string(),
                };
            };
            if let Some(outcome) =
                worker.invocation.as_mut().and_then(|invocation| invocation.outcome.take())
            {
                worker.invocation = None;
                if worker.process == ENDED {
                    state.workers.remove(&number);
                }
                break outcome;
            }
            if Instant::now() >= until {
                kill(worker.process);
                worker.invocation = None;
                let message = format!(
                    "Task timed out after {:.2} seconds",
                    self.options.timeout.as_secs_f64()
                );
                break Outcome::Failed { kind: "Sandbox.Timedout", message };
            }
            state = self.wait(state, Duration::from_millis(50));
        };
        drop(state);
        // The worker may have requested the next invocation before its outcome was taken: only now
        // is it idle.
        self.worker_changed.notify_all();
        let milliseconds = started.elapsed().as_micros().div_ceil(1000) as u64;
        self.mebibyte_milliseconds
            .fetch_add(milliseconds * self.options.memory_mib, Ordering::Relaxed);
        outcome
    }

    /// `POST /2015-03-31/functions/NAME/invocations`
    fn handle_invocation(&self, name: &str, request: &Request) -> Answer {
        let event = is_event(request);
        {
            let mut state = self.lock();
            if state.running >= self.options.concurrency {
                return error(429, "TooManyRequestsException", "Rate Exceeded.");
            }
            state.running += 1;
        }
        let Some(weak_self) = self.weak_self.upgrade() else {
            return error(500, "ServiceException", "ended");
        };
        let (name, payload) = (name.to_string(), request.body.bytes().to_vec());
        let work = move || {
            let outcome = weak_self.invoke(&name, &payload);
            weak_self.lock().running -= 1;
            outcome
        };
        if event {
            let thread =
                std::thread::Builder::new().stack_size(256 << 10).spawn(move || drop(work()));
            return thread.map_or_else(
                |_| error(500, "ServiceException", "cannot start a thread"),
                |_| Answer::new(202, ""),
            );
        }
        match work() {
            Outcome::Answered(body) => {
                Answer::new(200, body).with("Content-Type", "application/json")
            }
            Outcome::Failed { kind, message } => {
                let body = json!({"errorType": kind, "errorMessage": message}).to_string();
                Answer::new(200, body).with("X-Amz-Function-Error", "Unhandled")
            }
        }
    }

    /// `GET …/invocation/next`: waits for an invocation.
    fn next_invocation(&self, number: u64) -> Answer {
        let mut state = self.lock();
        loop {
            let Some(worker) =
                state.workers.get_mut(&number).filter(|worker| worker.process != ENDED)
            else {
                return error(403, "Forbidden", "unknown worker");
            };
            let waiting = worker
                .invocation
                .as_mut()
                .and_then(|invocation| Some((invocation.id.clone(), invocation.payload.take()?)));
            match waiting {
                Some((id, payload)) => {
                    worker.idle = false;
                    return Answer::new(200, payload)
                        .with("Lambda-Runtime-Aws-Request-Id", id)
                        .with("Content-Type", "application/json");
                }
                None => worker.idle = worker.invocation.is_none(),
            }
            if state.ended {
                return error(403, "Forbidden", "the service has ended");
            }
            state = self.wait(state, Duration::from_secs(1));
        }
    }

    /// `POST …/invocation/ID/response` and `…/error`.
    fn finish_invocation(&self, number: u64, id: &str, outcome: Outcome) -> Answer {
        let mut state = self.lock();
        let invocation =
            state.workers.get_mut(&number).and_then(|worker| worker.invocation.as_mut());
        match invocation.filter(|invocation| invocation.id == id) {
            Some(invocation) => invocation.outcome = Some(outcome),
            None => return error(403, "Forbidden", "unknown invocation"),
        }
        drop(state);
        self.worker_changed.notify_all();
        Answer::new(202, "")
    }
}

impl Service for Functions {
    fn answer(&self, request: &Request) -> Answer {
        let parts: Vec<&str> = request.path.split('/').collect();
        match (request.method.as_str(), &parts[..]) {
            ("POST", ["2015-03-31", "functions", name, "invocations"]) => {
                self.handle_invocation(name, request)
            }
            (method, ["worker", number, "2018-06-01", "runtime", rest @ ..]) => {
                let number = number.parse().unwrap_or(0);
                match (method, rest) {
                    ("GET", ["invocation", "next"]) => self.next_invocation(number),
                    ("POST", ["invocation", id, "response"]) => self.finish_invocation(
                        number,
                        id,
                        Outcome::Answered(request.body.bytes().to_vec()),
                    ),
                    ("POST", ["invocation", id, "error"]) => {
                        let message = String::from_utf8_lossy(request.body.bytes()).into_owned();
                        self.finish_invocation(
                            number,
                            id,
                            Outcome::Failed { kind: "Runtime.Error", message },
                        )
                    }
                    ("POST", ["init", "error"]) => Answer::new(202, ""),
                    _ => error(404, "NotFound", "unknown path"),
                }
            }
            _ => error(404, "NotFound", "unknown path"),
        }
    }

    fn sink(&self, request: &Request) -> Result<Sink, Answer> {
        let most = if is_event(request) { EVENT_BYTES_MAX } else { PAYLOAD_BYTES_MAX };
        let len = request.header("content-length").and_then(|len| len.parse::<u64>().ok());
        match len.is_some_and(|len| len > most) {
            true => Err(error(
                413,
                "RequestTooLargeException",
                &format!("the payload exceeds {most} bytes"),
            )),
            false => Ok(Sink::Memory(most)),
        }
    }

    /// Requests of workers never fail by injection.
    fn may_fail(&self, request: &Request) -> bool {
        !request.path.starts_with("worker/")
    }
}
