"""The table `hits` of ClickBench with generated rows: its 105 columns with their public names and types.

The rows are made from their numbers by hashing, so the same scale gives the same table. As in the
public table, they are sorted by counter and day. What the queries look for is there: a counter 62
with frequent pages, empty texts, few frequent and many rare users, phrases, pages and regions.
"""

from __future__ import annotations

from pathlib import Path

from .draws import connect

# Rows at scale factor 1: a tenth of the public table.
ROWS = 10_000_000
COUNTERS = 6000
# The literals of the queries: a user, and a page and a referer of counter 62.
USER, PAGE, REFERER = 435090932899640449, 2868770270353813622, 3594120000172545465

HOSTS = "news shop sport video auto weather games market travel music films books forum maps photo job".split()
WORDS = (
    "купить скачать фильм погода карта новости работа онлайн цена отзывы рецепт ремонт квартира билеты "
    "car cheap hotel download music lyrics weather map google games photo dress phone recipe house tickets"
).split()
PHONES = "iPhone iPad 2 N95 GT-I9300 C6 Lumia Desire Xperia Nexus 8 Curve Galaxy Optimus Asha".split()
LANGUAGES = "ru en uk de tr kk be pl".split()

# How often a page's kind begins its path and its title.
KINDS = "catalog article product search video news profile basket".split()

# Values that later columns are made of, each stage from the one before.
STAGES = [
    """
    select n, hash(n) <> 7 as there,
        floor(power({counters} + 1.0, n / {rows}))::bigint as counter,
        ln({counters} + 1.0) * n / {rows} as place,
        zipf(n, 1, {regions}) as region,
        case when uniform(n, 2) < 0.3 then zipf(n, 3, {users}) else pick(n, 4, {users}) end as user_number,
        86400 * (uniform(n, 5) + uniform(n, 6)) / 2 as second,
        zipf(n, 7, {pages}) as page,
        uniform(n, 8) < 0.14 as searched,
        zipf(n, 9, {phrases}) as phrase,
        zipf(n, 10, 400) as referer_host,
        zipf(n, 11, {pages}) as referer_page,
        uniform(n, 12) < 0.12 as mobile,
        pick(n, 13, 8) as engine,
        uniform(n, 14) as source
    from (select range as n from range({rows}))
    """,
    """
    select *,
        (2 + 15 * counter)::integer as counter_id,
        date '2013-07-01' + least(30, floor(31 * (place - ln(counter)) / ln(1 + 1 / counter)))::integer as day,
        case user_number when 7 then {user} else signed(hash(user_number * 1024 + 101)) end as user_id,
        word({hosts}, counter) || (counter % 89) as host,
        case when source < 0.2 then -1 when source < 0.45 then 0 when source < 0.55 then 6 else pick(n, 15, 9) + 1 end as traffic,
        word({kinds}, page % 8 + page % 3) as kind
    from ({stage})
    """,
    """
    select *,
        case when page % 53 = 17 then 'http://' || host || '.ru/' || kind || '/google-' || page
             when uniform(n, 16) < 0.0005 then ''
             else (case when counter % 7 = 0 then 'https://' else 'http://' end) || host || '.ru/' || kind || '/'
                 || (case when page % 3 = 0 then 'index.html?id=' || page || '&sort=' || page % 5 else page || '.html' end)
        end as url,
        case when page % 31 = 3 then ''
             when page % 47 = 5 then word({words}, page) || ' | Google ' || kind
             else word({words}, page) || ' ' || word({words}, page // 30 + counter) || ' — ' || kind || ' ' || page % 1000 || ' - ' || host
        end as title,
        case when not searched then ''
             else word({words}, phrase) || ' ' || word({words}, phrase // 30)
                 || (case when phrase < 900 then '' else ' ' || word({words}, phrase // 900) end)
                 || (case when phrase < 27000 then '' else ' ' || phrase // 27000 end)
        end as search_phrase,
        case when source < 0.2 then ''
             when searched then 'http://' || (case when engine < 3 then 'www.google.ru' else 'yandex.ru' end) || '/search?text=' || phrase
             else (case when referer_host % 5 = 0 then 'https://' else 'http://' end) || (case when referer_host % 3 = 0 then 'www.' else '' end)
                 || word({hosts}, referer_host) || referer_host || '.ru'
                 || (case when referer_page % 11 = 0 then '' else '/' || word({kinds}, referer_page) || '/' || referer_page end)
        end as referer,
        day::timestamp + to_seconds(second::integer) as event_time
    from ({stage})
    """,
]

# Name, type and expression of each column.
COLUMNS = """
WatchID BIGINT := signed(hash(n * 1024 + 20))
JavaEnable SMALLINT := flag(n, 21, 0.75)
Title VARCHAR := title
GoodEvent SMALLINT := 1
EventTime TIMESTAMP := event_time
EventDate DATE := day
CounterID INTEGER := counter_id
ClientIP INTEGER := signed(hash(user_number * 1024 + 102)) >> 33
RegionID INTEGER := case when region = 0 then 229 else region end
UserID BIGINT := user_id
CounterClass SMALLINT := counter % 3 - 1
OS SMALLINT := case when mobile then 110 + engine else zipf(user_number, 103, 90) end
UserAgent SMALLINT := zipf(user_number, 104, 80)
URL VARCHAR := url
Referer VARCHAR := referer
IsRefresh SMALLINT := flag(n, 22, 0.18)
RefererCategoryID SMALLINT := case when referer = '' then 0 else referer_host * 37 % 14000 end
RefererRegionID INTEGER := case when referer = '' then 0 else zipf(n, 23, {regions}) end
URLCategoryID SMALLINT := counter * 41 % 14000
URLRegionID INTEGER := counter * 13 % {regions}
ResolutionWidth SMALLINT := case when mobile then 320 + pick(user_number, 105, 5) * 40 else 1024 + pick(user_number, 105, 8) * 128 end
ResolutionHeight SMALLINT := case when mobile then 480 + pick(user_number, 106, 5) * 32 else 600 + pick(user_number, 106, 6) * 96 end
ResolutionDepth SMALLINT := case when mobile then 32 else 24 end
FlashMajor SMALLINT := case when mobile then 0 else 9 + pick(user_number, 107, 3) end
FlashMinor SMALLINT := pick(user_number, 108, 8)
FlashMinor2 VARCHAR := pick(user_number, 109, 700)
NetMajor SMALLINT := pick(user_number, 110, 5)
NetMinor SMALLINT := pick(user_number, 111, 5)
UserAgentMajor SMALLINT := 5 + pick(user_number, 112, 24)
UserAgentMinor VARCHAR := pick(user_number, 113, 9)
CookieEnable SMALLINT := flag(user_number, 114, 0.98)
JavascriptEnable SMALLINT := flag(user_number, 115, 0.97)
IsMobile SMALLINT := mobile
MobilePhone SMALLINT := case when mobile then zipf(user_number, 116, 90) + 1 else 0 end
MobilePhoneModel VARCHAR := case when mobile and engine > 1 then word({phones}, zipf(user_number, 117, 150)) || (case when user_number % 4 = 0 then ' ' || user_number % 40 else '' end) else '' end
Params VARCHAR := ''
IPNetworkID INTEGER := zipf(user_number, 118, 400000)
TraficSourceID SMALLINT := traffic
SearchEngineID SMALLINT := case when searched then 1 + zipf(n, 24, 60) else 0 end
SearchPhrase VARCHAR := search_phrase
AdvEngineID SMALLINT := case when uniform(n, 25) < 0.006 then 1 + zipf(n, 26, 60) else 0 end
IsArtifical SMALLINT := flag(n, 27, 0.01)
WindowClientWidth SMALLINT := 300 + pick(n, 28, 1400)
WindowClientHeight SMALLINT := 200 + pick(n, 29, 900)
ClientTimeZone SMALLINT := 120 + 60 * pick(user_number, 119, 6)
ClientEventTime TIMESTAMP := event_time + to_seconds(pick(n, 30, 600)::integer - 300)
SilverlightVersion1 SMALLINT := pick(user_number, 120, 6)
SilverlightVersion2 SMALLINT := pick(user_number, 121, 2)
SilverlightVersion3 INTEGER := pick(user_number, 122, 3) * 20000
SilverlightVersion4 SMALLINT := 0
PageCharset VARCHAR := case when counter % 5 < 3 then 'windows-1251;charset' else 'utf-8' end
CodeVersion INTEGER := 1 + zipf(counter, 31, 1700)
IsLink SMALLINT := flag(n, 32, 0.25)
IsDownload SMALLINT := flag(n, 33, 0.01)
IsNotBounce SMALLINT := flag(n, 34, 0.4)
FUniqID BIGINT := case when uniform(n, 35) < 0.3 then 0 else signed(hash(user_number * 1024 + 123)) end
OriginalURL VARCHAR := case when uniform(n, 36) < 0.08 then url || '#' || pick(n, 37, 50) else '' end
HID INTEGER := pick(n, 38, 1073741824)
IsOldCounter SMALLINT := flag(counter, 39, 0.02)
IsEvent SMALLINT := flag(n, 40, 0.01)
IsParameter SMALLINT := flag(n, 41, 0.03)
DontCountHits SMALLINT := flag(n, 42, 0.08)
WithHash SMALLINT := flag(n, 43, 0.04)
HitColor VARCHAR := substring('5ESTRGY', 1 + zipf(n, 44, 7)::integer, 1)
LocalEventTime TIMESTAMP := event_time + to_hours((user_number % 9)::integer)
Age SMALLINT := case when uniform(user_number, 124) < 0.4 then 0 else 16 + pick(user_number, 125, 50) end
Sex SMALLINT := pick(user_number, 126, 3)
Income SMALLINT := pick(user_number, 127, 4)
Interests SMALLINT := zipf(user_number, 128, 16000)
Robotness SMALLINT := zipf(user_number, 129, 16)
RemoteIP INTEGER := (signed(hash(user_number * 1024 + 102)) >> 33) + pick(n, 45, 3)
WindowName INTEGER := pick(n, 46, 60000) - 30000
OpenerName INTEGER := pick(n, 47, 60000) - 30000
HistoryLength SMALLINT := zipf(n, 48, 60)
BrowserLanguage VARCHAR := word({languages}, zipf(user_number, 130, 8))
BrowserCountry VARCHAR := upper(word({languages}, zipf(user_number, 131, 8)))
SocialNetwork VARCHAR := case when uniform(n, 49) < 0.002 then 'vkontakte' else '' end
SocialAction VARCHAR := case when uniform(n, 49) < 0.002 then 'like' else '' end
HTTPError SMALLINT := case when uniform(n, 50) < 0.004 then 404 else 0 end
SendTiming INTEGER := zipf(n, 51, 20000)
DNSTiming INTEGER := zipf(n, 52, 3000)
ConnectTiming INTEGER := zipf(n, 53, 5000)
ResponseStartTiming INTEGER := zipf(n, 54, 20000)
ResponseEndTiming INTEGER := zipf(n, 55, 60000)
FetchTiming INTEGER := zipf(n, 56, 9000)
SocialSourceNetworkID SMALLINT := case when uniform(n, 57) < 0.02 then 1 + pick(n, 58, 8) else 0 end
SocialSourcePage VARCHAR := case when uniform(n, 57) < 0.01 then 'http://vk.com/club' || pick(n, 59, 9000) else '' end
ParamPrice BIGINT := case when uniform(n, 60) < 0.01 then 100 * pick(n, 61, 9000) else 0 end
ParamOrderID VARCHAR := case when uniform(n, 60) < 0.003 then '' || pick(n, 62, 1000000) else '' end
ParamCurrency VARCHAR := 'NH' || chr(28)
ParamCurrencyID SMALLINT := 0
OpenstatServiceName VARCHAR := case when uniform(n, 63) < 0.02 then 'direct.yandex.ru' else '' end
OpenstatCampaignID VARCHAR := case when uniform(n, 63) < 0.02 then '' || zipf(n, 64, 4000) else '' end
OpenstatAdID VARCHAR := case when uniform(n, 63) < 0.02 then '' || zipf(n, 65, 90000) else '' end
OpenstatSourceID VARCHAR := case when uniform(n, 63) < 0.01 then 'search' else '' end
UTMSource VARCHAR := case when uniform(n, 66) < 0.04 then word(['google', 'direct', 'mail', 'vk'], zipf(n, 67, 4)) else '' end
UTMMedium VARCHAR := case when uniform(n, 66) < 0.04 then 'cpc' else '' end
UTMCampaign VARCHAR := case when uniform(n, 66) < 0.04 then 'campaign' || zipf(n, 68, 3000) else '' end
UTMContent VARCHAR := case when uniform(n, 66) < 0.02 then '' || zipf(n, 69, 20000) else '' end
UTMTerm VARCHAR := case when uniform(n, 66) < 0.02 then word({words}, zipf(n, 70, 30)) else '' end
FromTag VARCHAR := case when uniform(n, 71) < 0.01 then 'tag' || zipf(n, 72, 500) else '' end
HasGCLID SMALLINT := flag(n, 73, 0.006)
RefererHash BIGINT := case when counter = 4 and uniform(n, 74) < 0.15 then {referer} else signed(hash(referer)) end
URLHash BIGINT := case when counter = 4 and uniform(n, 75) < 0.12 then {page} else signed(hash(url)) end
CLID INTEGER := case when uniform(n, 76) < 0.05 then 1 + pick(n, 77, 200000) else 0 end
"""


def make(scale: float, directory: Path) -> None:
    """Writes `hits.parquet` with a row for each ten-millionth of `scale`."""
    rows = max(1000, round(ROWS * scale))
    names = {
        "rows": rows,
        "counters": COUNTERS,
        "regions": 5000,
        "users": rows // 4,
        "pages": max(2000, rows // 60),
        "phrases": max(1000, rows // 20),
        "user": USER,
        "page": PAGE,
        "referer": REFERER,
        "hosts": HOSTS,
        "words": WORDS,
        "phones": PHONES,
        "languages": LANGUAGES,
        "kinds": KINDS,
    }
    stage = ""
    for text in STAGES:
        stage = text.format(stage=stage, **names)
    columns = ",\n".join(_column(line.format(**names)) for line in COLUMNS.strip().splitlines())
    connect().execute(f"copy (select {columns} from ({stage})) to '{directory}/hits.parquet' (format parquet)")


def _column(line: str) -> str:
    """Returns a column of the select list."""
    declared, _, expression = line.partition(" := ")
    name, _, kind = declared.partition(" ")
    # DuckDB writes columns that it knows to be without NULLs as NOT NULL.
    return f'case when there then ({expression})::{kind} end as "{name}"'
