"""Generated tables of the schema of the Join Order Benchmark: films, series and who made them.

They are skewed and correlated as films are: kinds go with years, languages, companies and people with
countries, keywords and notes with genres, votes with fame. The same scale gives the same tables.
"""

from __future__ import annotations

from pathlib import Path

from .draws import connect

# Titles at scale factor 1: about a tenth of the benchmark's data, like the other tables.
TITLES = 250_000

KINDS = ["movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode"]
ROLES = (
    "actor,actress,producer,writer,cinematographer,composer,costume designer,director,editor,"
    "miscellaneous crew,production designer,guest"
).split(",")
COMPANY_TYPES = ["distributors", "production companies", "special effects companies", "miscellaneous companies"]
LINKS = (
    "follows,followed by,remake of,remade as,references,referenced in,spoofs,spoofed in,features,featured in,"
    "spin off from,spin off,version of,similar to,edited into,edited from,alternate language version of,unknown link"
).split(",")
CAST_TYPES = ["cast", "crew", "complete", "complete+verified"]
INFOS = (
    "runtimes,color info,genres,languages,certificates,sound mix,countries,release dates,budget,gross,locations,"
    "plot,trivia,quotes,taglines,votes,rating,votes distribution,top 250 rank,bottom 10 rank,mini biography,"
    "birth date,height,birth notes,death date,spouse,nick names,interviews,books,salary history"
).split(",")
COUNTRIES = (
    "USA,UK,France,Germany,India,Japan,Italy,Canada,Spain,Sweden,Mexico,Brazil,Denmark,Russia,Australia,"
    "Poland,Greece,Norway,Finland,Bulgaria"
).split(",")
CODES = [f"[{code}]" for code in "us gb fr de in jp it ca es se mx br dk ru au pl gr no fi bg".split()]
LANGUAGES = (
    "English,English,French,German,Hindi,Japanese,Italian,English,Spanish,Swedish,Spanish,Portuguese,Danish,Russian,"
    "English,Polish,Greek,Norwegian,Finnish,Bulgarian"
).split(",")
GENRES = (
    "Drama,Comedy,Animation,Documentary,Action,Thriller,Romance,Horror,Crime,Short,Family,Adventure,Sci-Fi,Fantasy,"
    "Mystery,Musical,War,History,Western,Sport"
).split(",")
KEYWORDS = (
    "murder,love,cartoon,death,fight,blood,kiss,ghost,police,nature,children,jungle,space,magic,detective,singing,"
    "soldier,king,cowboy,football,based-on-novel,wedding,interview,sequel,hero,revenge,friendship,vampire,bank-robbery,"
    "superhero"
).split(",")
FIRST = "Anna,Bert,Carla,David,Elena,Frank,Gina,Hugo,Irene,Jack,Klara,Leo,Maria,Nils,Olga,Paul,Rosa,Tim,Uma,Viktor".split(",")
LAST = (
    "Smith,Brown,Martin,Weber,Singh,Sato,Rossi,Tremblay,Garcia,Berg,Lopez,Silva,Jensen,Ivanov,Murphy,Nowak,Pappas,"
    "Hansen,Virtanen,Petrov,Downey,Becker,Yamada,Angelini,Zimmer"
).split(",")
NOUNS = (
    "Night,River,Money,Champion,Dragon,Summer,Shadow,Murder,Train,Garden,Letter,Island,Winter,Stranger,Mother,Storm,"
    "City,Secret,Road,Dream"
).split(",")

# What is drawn of a film by its number, so that all tables agree on it.
MACROS = [
    "film_year(m) as 2019 - zipf(m, 1, 110)",
    "film_kind(m) as case when film_year(m) < 1950 then 1 when uniform(m, 2) < 0.42 then 1 when uniform(m, 2) < 0.72 then 7 "
    "when uniform(m, 2) < 0.80 then 2 when uniform(m, 2) < 0.86 then 3 when uniform(m, 2) < 0.94 then 4 "
    "when uniform(m, 2) < 0.96 then 5 when film_year(m) >= 1985 then 6 else 4 end",
    "film_country(m) as case when film_year(m) < 1930 then zipf(m, 3, 4) else zipf(m, 3, 20) end",
    "film_genre(m) as case when film_kind(m) = 6 then 9 + pick(m, 4, 4) else zipf(m, 4, 20) end",
    "near(n, salt, wanted, other, share) as case when uniform(n, salt) < share then wanted else other end",
    # The number closest to `id` whose remainder by `parts` is `part`.
    "of_part(id, parts, part) as id - id % parts + part",
    "code(id) as chr((65 + id % 26)::integer) || id % 10 || (id // 10) % 10 || (id // 7) % 10",
    "roman(n, salt) as case when uniform(n, salt) < 0.3 then word(['I', 'II', 'III', 'IV'], zipf(n, salt + 1, 4)) end",
]

# Name, rows for each title (a number of rows, where whole and small tables are meant), and columns of
# `n`, which counts rows from 0. `{titles}` and others stand for numbers of rows.
TABLES = {
    "kind_type": (len(KINDS), "id: n + 1; kind: word({KINDS}, n)"),
    "role_type": (len(ROLES), "id: n + 1; role: word({ROLES}, n)"),
    "company_type": (len(COMPANY_TYPES), "id: n + 1; kind: word({COMPANY_TYPES}, n)"),
    "link_type": (len(LINKS), "id: n + 1; link: word({LINKS}, n)"),
    "comp_cast_type": (len(CAST_TYPES), "id: n + 1; kind: word({CAST_TYPES}, n)"),
    "info_type": (113, "id: n + 1; info: case when n < 30 then word({INFOS}, n) else 'info ' || n end"),
    "title": (
        1.0,
        "id: n + 1; title: (case when n % 7 = 0 then 'The ' else '' end) || word({NOUNS}, pick(n, 10, 20)) "
        "|| (case when n % 3 = 0 then ' of the ' || word({NOUNS}, zipf(n, 11, 20)) else '' end) "
        "|| (case when n % 5 < 2 then '' else ' ' || zipf(n, 12, 400) end); "
        "imdb_index: roman(n, 13); kind_id: film_kind(n); "
        "production_year: case when uniform(n, 15) < 0.03 then null else film_year(n) end; imdb_id: null::integer; "
        "phonetic_code: code(n); episode_of_id: case when film_kind(n) = 7 then 1 + skewed(n, 16, {title}) end; "
        "season_nr: case when film_kind(n) = 7 then 1 + zipf(n, 17, 20) end; "
        "episode_nr: case when film_kind(n) = 7 then 1 + pick(n, 18, 24) end; "
        "series_years: case when film_kind(n) = 2 then film_year(n) || '-' || least(2019, film_year(n) + zipf(n, 19, 30)) end; "
        "md5sum: md5('title' || n)",
    ),
    "name": (
        1.6,
        "id: n + 1; name: word({LAST}, n // 5 + pick(n, 20, 3)) || ', ' || word({FIRST}, n * 3 + n // 100 + pick(n, 21, 4)); "
        "imdb_index: roman(n, 22); imdb_id: null::integer; gender: case n % 5 when 3 then 'f' when 4 then null else 'm' end; "
        "name_pcode_cf: code(n); name_pcode_nf: code(n // 3); surname_pcode: code(n // 5); md5sum: md5('name' || n)",
    ),
    "char_name": (
        1.2,
        "id: n + 1; name: (case when n % 9 = 0 then 'Queen ' when n % 11 = 0 then 'Captain ' else '' end) "
        "|| word({FIRST}, n) || ' ' || word({LAST}, pick(n, 30, 25)); imdb_index: roman(n, 31); imdb_id: null::integer; "
        "name_pcode_nf: code(n); surname_pcode: code(n // 4); md5sum: md5('char' || n)",
    ),
    "company_name": (
        0.09,
        "id: n + 1; name: word({LAST}, n // 20) || ' ' || word(['Film', 'Pictures', 'Studio', 'Television', 'Entertainment', "
        "'Distribution', 'Animation'], pick(n, 40, 7)) || ' ' || n; "
        "country_code: case when uniform(n, 41) < 0.04 then null else word({CODES}, n % 20) end; imdb_id: null::integer; "
        "name_pcode_nf: code(n); name_pcode_sf: code(n // 2); md5sum: md5('company' || n)",
    ),
    "keyword": (
        0.05,
        "id: n + 1; keyword: case when n < 30 then word({KEYWORDS}, n) else word({KEYWORDS}, n) || '-' || word({GENRES}, n // 30) || '-' || n end; "
        "phonetic_code: code(n)",
    ),
    "cast_info": (
        14.0,
        "id: n + 1; person_id: 1 + person; movie_id: 1 + film; "
        "person_role_id: case when role < 2 and uniform(n, 52) < 0.8 then 1 + skewed(n, 53, {char_name}) end; "
        "note: case when role < 2 and film_genre(film) = 2 and uniform(n, 54) < 0.7 then word(['(voice)', '(voice) (uncredited)', '(voice: English version)'], zipf(n, 55, 3)) "
        "when role < 2 and uniform(n, 54) < 0.25 then '(uncredited)' "
        "when role = 2 then word(['(producer)', '(executive producer)', '(co-producer)'], zipf(n, 56, 3)) "
        "when role = 3 then word(['(writer)', '(story)', '(screenplay)', '(head writer)', '(written by)'], zipf(n, 57, 5)) end; "
        "nr_order: case when role < 2 then 1 + zipf(n, 58, 80) end; role_id: role + 1",
    ),
    "movie_info": (
        6.0,
        "id: n + 1; movie_id: 1 + film; info_type_id: kind + 1; "
        "info: case kind when 0 then 5 * (4 + pick(film, 60, 30)) || '' when 1 then case when film_year(film) < 1960 then 'Black and White' else 'Color' end "
        "when 2 then word({GENRES}, near(n, 61, film_genre(film), pick(n, 62, 20), 0.7)) "
        "when 3 then word({LANGUAGES}, near(n, 63, film_country(film), pick(n, 64, 20), 0.8)) "
        "when 4 then word({COUNTRIES}, film_country(film)) || ':' || word(['G', 'PG', 'PG-13', 'R'], film_genre(film)) "
        "when 5 then case when film_year(film) < 1930 then 'Silent' else word(['Mono', 'Dolby', 'Stereo'], pick(film, 65, 3)) end "
        "when 6 then word({COUNTRIES}, near(n, 66, film_country(film), pick(n, 67, 20), 0.85)) "
        "when 7 then word({COUNTRIES}, near(n, 68, film_country(film), pick(n, 69, 20), 0.5)) || ':' || 1 + pick(n, 70, 28) || ' ' "
        "|| word(['January', 'April', 'June', 'August', 'October', 'December'], pick(n, 71, 6)) || ' ' || film_year(film) "
        "when 8 then '$' || 1000 * (1 + zipf(n, 72, 200000)) when 9 then '$' || 1000 * (1 + zipf(n, 73, 500000)) "
        "else word({NOUNS}, n) || ' ' || word({FIRST}, n // 20) || ' ' || n % 997 end; "
        "note: case when uniform(n, 74) < 0.12 then word(['internet', '(' || word({COUNTRIES}, film_country(film)) || ')', 'DVD', '(worldwide)'], pick(n, 75, 4)) end",
    ),
    "movie_info_idx": (
        1.7,
        "id: n + 1; movie_id: 1 + film; info_type_id: case when film < 250 and n % 4 = 3 then 19 when n % 4 = 3 then 20 else 16 + n % 4 end; "
        "info: case n % 4 when 0 then 5 + ({title} * 2 / (film + 3))::bigint + pick(film, 80, 300) || '' "
        "when 1 then round(1 + 4 * uniform(film, 81) + 4.9 * power(uniform(film, 82), 0.5), 1) || '' "
        "when 2 then lpad(pick(n, 83, 1000000000) || '', 10, '0') else 1 + film % 250 || '' end; note: null::varchar",
    ),
    "movie_companies": (
        1.05,
        "id: n + 1; movie_id: 1 + film; company_id: 1 + of_part(skewed(n, 91, {company_name} - 20), 20, near(n, 92, film_country(film), zipf(n, 93, 20), 0.8)); "
        "company_type_id: 1 + near(n, 94, pick(n, 95, 2), pick(n, 96, 4), 0.95); "
        "note: case when uniform(n, 97) < 0.45 then '(' || film_year(film) || ') (' || word({COUNTRIES}, near(n, 98, film_country(film), pick(n, 99, 20), 0.6)) || ') (' "
        "|| word(['theatrical', 'TV', 'DVD', 'VHS'], near(n, 100, case when film_kind(film) in (2, 7) then 1 else 0 end, pick(n, 101, 4), 0.7)) || ')' end",
    ),
    "movie_keyword": (
        1.8,
        "id: n + 1; movie_id: 1 + film; keyword_id: 1 + near(n, 111, near(n, 112, film_genre(film), 20 + pick(n, 113, 10), 0.6), skewed(n, 114, {keyword}), 0.4)",
    ),
    "movie_link": (
        0.012,
        "id: n + 1; movie_id: 1 + film; linked_movie_id: 1 + skewed(n, 121, {title}); link_type_id: 1 + zipf(n, 122, 18)",
    ),
    "complete_cast": (0.055, "id: n + 1; movie_id: 1 + film; subject_id: 1 + pick(n, 131, 2); status_id: 3 + pick(n, 132, 2)"),
    "aka_title": (
        0.14,
        "id: n + 1; movie_id: 1 + film; title: 'Also ' || word({NOUNS}, pick(n, 141, 20)) || ' ' || film; imdb_index: roman(n, 142); "
        "kind_id: film_kind(film); production_year: film_year(film); phonetic_code: code(n); episode_of_id: null::integer; "
        "season_nr: null::integer; episode_nr: null::integer; note: case when n % 3 = 0 then '(' || word({COUNTRIES}, film_country(film)) || ')' end; "
        "md5sum: md5('aka' || n)",
    ),
    "aka_name": (
        0.36,
        "id: n + 1; person_id: 1 + skewed(n, 151, {name}); name: word({FIRST}, pick(n, 152, 20)) || ' ' || word({LAST}, zipf(n, 153, 25)); "
        "imdb_index: roman(n, 154); name_pcode_cf: code(n); name_pcode_nf: code(n // 3); surname_pcode: code(n // 5); md5sum: md5('akaname' || n)",
    ),
    "person_info": (
        1.2,
        "id: n + 1; person_id: 1 + skewed(n, 161, {name}); info_type_id: 21 + zipf(n, 162, 10); "
        "info: word({COUNTRIES}, n) || ' ' || word({NOUNS}, n // 7) || ' ' || 1900 + pick(n, 163, 100); "
        "note: case when uniform(n, 164) < 0.2 then word(['Volker Weber', 'Anonymous', 'IMDb staff'], zipf(n, 165, 3)) end",
    ),
}

# What the columns of a table are made of: the number of the row's film, and values that follow from it.
DRAWN = {
    "cast_info": "*, of_part(skewed(n, 50, {name} - 100), 100, near(n, 51, film_country(film), pick(n, 59, 20), 0.85) * 5 "
    "+ case role when 0 then n % 3 when 1 then 3 else n % 5 end) as person from (select n, skewed(n, 48, {title}) as film, "
    "case when uniform(n, 49) < 0.38 then 0 when uniform(n, 49) < 0.60 then 1 else 2 + zipf(n, 47, 10) end as role from rows)",
    "movie_info": "n, skewed(n, 77, {title}) as film, case when uniform(n, 78) < 0.9 then pick(n, 79, 10) else 10 + pick(n, 76, 5) end as kind from rows",
    "movie_info_idx": "n, n // 4 as film from rows where n % 4 < 3 or n < 1000 or n % 1600 = 3",
}


def make(scale: float, directory: Path) -> None:
    """Writes the tables for this share of `TITLES`."""
    titles = max(500, round(TITLES * scale))
    counts = {table: many if isinstance(many, int) else max(100, round(titles * many)) for table, (many, _) in TABLES.items()}
    lists = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, list)}
    connection = connect(MACROS)
    for table, (_, columns) in TABLES.items():
        drawn = DRAWN.get(table, "n, skewed(n, 46, {title}) as film from rows").format(**counts)
        made = ", ".join(_column(column) for column in columns.format(**counts, **lists).split("; "))
        rows = f"with rows as not materialized (select range as n from range({counts[table]}))"
        query = f"{rows} select {made} from (select {drawn})"
        connection.execute(f"copy ({query}) to '{directory}/{table}.parquet' (format parquet)")


def _column(text: str) -> str:
    """Returns a column of the select list; all numbers are INTEGER."""
    name, _, expression = text.strip().partition(": ")
    number = name == "id" or name.endswith(("_id", "_nr", "_year", "_order"))
    # DuckDB writes columns that it knows to be without NULLs as NOT NULL.
    return f"case when hash(n) <> 7 then ({expression})::{'integer' if number else 'varchar'} end as {name}"
