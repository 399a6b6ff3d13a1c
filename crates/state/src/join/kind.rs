//! The kinds of join, and their outputs.

use tessera_plan::{Expr, Node, Value};
use tessera_types::{Atom, Code, Error, Field, Result, SqlState, Tuple, quote_name};

/// The output of a join; the stream is the left side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and stream tuples without a match.
    Left,
    /// Pairs, and build tuples without a match.
    Right,
    /// Pairs, and tuples of both sides without a match.
    Full,
    /// Stream tuples with a match.
    Semi,
    /// Stream tuples without a match.
    Anti,
    /// Stream tuples, and whether they have a match.
    Mark,
    /// Like `Left`, but a second match is an error.
    Single,
    /// Build tuples with a match.
    BuildSemi,
    /// Build tuples without a match.
    BuildAnti,
}

/// The names of the kinds in plans.
pub const KINDS: [(&str, JoinKind); 10] = [
    ("inner", JoinKind::Inner),
    ("left", JoinKind::Left),
    ("right", JoinKind::Right),
    ("full", JoinKind::Full),
    ("semi", JoinKind::Semi),
    ("anti", JoinKind::Anti),
    ("mark", JoinKind::Mark),
    ("single", JoinKind::Single),
    ("build_semi", JoinKind::BuildSemi),
    ("build_anti", JoinKind::BuildAnti),
];

impl JoinKind {
    /// Returns the kind that a node requests.
    ///
    /// # Errors
    /// It is missing or not one of `allowed` (all when empty).
    pub fn of(node: &Node, allowed: &[JoinKind]) -> Result<JoinKind> {
        let allowed: Vec<_> =
            KINDS.iter().filter(|(_, kind)| allowed.is_empty() || allowed.contains(kind)).collect();
        let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
        let chosen = node.params.choice("join", &names)?;
        let kind = allowed.iter().find(|(name, _)| *name == chosen).map(|(_, kind)| *kind);
        kind.ok_or_else(|| Error::internal(format!("join kind {chosen} is not implemented")))
    }

    /// Returns whether the output has pairs of tuples.
    pub fn yields_pairs(self) -> bool {
        use JoinKind::{Full, Inner, Left, Right, Single};
        matches!(self, Inner | Left | Right | Full | Single)
    }

    /// Returns whether stream tuples without a match are in the output, with NULLs.
    pub fn keeps_stream(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full | JoinKind::Single)
    }

    /// Returns whether a stream tuple without a match affects the output.
    pub fn keeps_unmatched(self) -> bool {
        self.keeps_stream() || matches!(self, JoinKind::Anti | JoinKind::Mark)
    }

    /// Returns whether the join must track which stream tuples were matched.
    pub fn decides_stream(self) -> bool {
        use JoinKind::{Anti, Full, Left, Mark, Semi, Single};
        matches!(self, Left | Full | Single | Semi | Anti | Mark)
    }

    /// Returns whether the join must track which build tuples were matched.
    pub fn marks_build(self) -> bool {
        use JoinKind::{BuildAnti, BuildSemi, Full, Right};
        matches!(self, Right | Full | BuildSemi | BuildAnti)
    }

    /// Rejects a parameter `null_aware` where it has no meaning.
    ///
    /// # Errors
    /// The join is neither `anti` nor `mark`, or the parameter is not a flag.
    pub fn check_null_aware(self, node: &Node) -> Result<()> {
        if node.params.flag("null_aware")? && !matches!(self, JoinKind::Anti | JoinKind::Mark) {
            return Err(Error::semantic(
                "parameter null_aware requires join = anti or join = mark",
            ));
        }
        Ok(())
    }

    /// Rejects a second match if the join allows only one; `repeated` says whether there was one.
    ///
    /// # Errors
    /// The join is of a scalar subquery.
    pub fn check_repeated(self, repeated: bool) -> Result<()> {
        if repeated && self == JoinKind::Single {
            return Err(Error::new(
                Code::Data,
                "more than one row returned by a subquery used as a value",
            )
            .with_state(SqlState::CARDINALITY_VIOLATION));
        }
        Ok(())
    }

    /// Returns the output tuple type.
    ///
    /// # Errors
    /// A field that would be NULL holds a collection.
    pub fn output(self, stream: &Tuple, build: &Tuple, node: &Node) -> Result<Tuple> {
        use JoinKind::{Anti, BuildAnti, BuildSemi, Full, Inner, Left, Mark, Right, Semi, Single};
        Ok(match self {
            Inner => stream.concat(build),
            Left | Single => stream.concat(&nullable(build)?),
            Right => nullable(stream)?.concat(build),
            Full => nullable(stream)?.concat(&nullable(build)?),
            Semi | Anti => stream.clone(),
            BuildSemi | BuildAnti => build.clone(),
            Mark => {
                let nullable = node.params.flag("null_aware").unwrap_or(false);
                let mark = Field::new(mark_name(node)?, Atom::Boolean).with_nullable(nullable);
                stream.concat(&Tuple::new(vec![mark]))
            }
        })
    }
}

/// Returns the name of the field that a mark join adds: a name or a text; `mark` by default.
fn mark_name(node: &Node) -> Result<std::sync::Arc<str>> {
    match node.params.get("mark") {
        None => Ok("mark".into()),
        Some(Value::Expr(Expr::Field(name)) | Value::Name(name) | Value::String(name)) => {
            Ok(name.clone())
        }
        Some(_) => Err(Error::semantic("parameter mark must be the name of the field to add")),
    }
}

fn nullable(tuple: &Tuple) -> Result<Tuple> {
    let field = |field: &Field| match field.atom() {
        Some(_) => Ok(field.with_nullable(true)),
        None => Err(Error::semantic(format!(
            "field {} holds a collection ({}), which cannot be NULL in tuples without a match; project it away",
            quote_name(&field.name),
            field.item
        ))),
    };
    Ok(Tuple::new(tuple.fields().iter().map(field).collect::<Result<Vec<_>>>()?))
}
