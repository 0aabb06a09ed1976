"""The texts and kinds of the demo's markets, as plain constants.

Fields in braces are drawn from `ENTITIES`; `{day}`, `{month}` and `{year}` come from the market's closing time.
"""

from typing import Final, Literal, NamedTuple

from generator.api.contract import MarketStatus, Resolution

STATUSES: Final[tuple[MarketStatus, ...]] = (
    "open", "open", "resolved", "open", "closed", "open", "resolved", "open", "open", "cancelled",
    "resolved", "open", "open", "closed", "resolved", "open", "open", "resolved", "closed", "open",
)  # fmt: skip
RESOLUTIONS: Final[tuple[Resolution, ...]] = (
    "NO", "YES", "CANCEL", "NO", "YES", "NO", "YES", "NO", "NO", "YES", "NO", "YES", "NO",
)  # fmt: skip
#: Kind of market: (number of the first such market, period). Each kind occurs among the first forty markets, on one
#: with a suitable status; the periods have few common factors, so that the kinds mix.
KINDS: Final[dict[str, tuple[int, int]]] = {
    "hidden": (10, 11),
    "overdue": (5, 13),  # open past its closing time
    "imported": (1, 14),  # all at the same times
    "cancelled without a time": (29, 40),
    "times in RFC 3339": (6, 8),
    "paused": (8, 19),
    "in a public FX family": (3, 23),
    "in a private FX family": (16, 23),
    "id in upper case": (12, 37),
    "no slug": (7, 29),
    "slug of its predecessor": (15, 97),
    "no description": (3, 9),
    "tied": (5, 12),  # the same volume and number of traders
    "empty order book": (1, 5),
    "deep order book": (0, 13),
    "no fills": (2, 6),
    "thousands of fills": (0, 200),
    "hardly any history": (5, 9),
    "thousands of points": (0, 200),
}
#: From this market on, hardly anybody trades: a site with a million markets has that many, but not their rows.
QUIET_FROM: Final = 100_000
#: Approval and listing of hidden markets, in turn.
HIDDEN_BY: Final = (("pending", True), ("rejected", True), ("approved", False))

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

#: Question templates by primary category. Some categories are no slugs, as in databases that grew over the years.
QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "politics": (
        "Will the government of {country} survive a confidence vote before {day}?",
        "Will {country} pass its {year} budget by {day}?",
        "Will the finance minister of {country} leave office by {day}?",
        "Will turnout in {country}'s next national vote exceed {percent}%?",
    ),
    "elections": (
        "Will the governing coalition of {country} keep its majority at the next general election?",
        "Will {country} call an early election before {day}?",
        "Will the largest party in {country} poll above {percent}% in {month} {year}?",
    ),
    "u.s. 2024 elections": (
        "Did turnout in {state} exceed {percent}% of eligible voters in the 2024 general election?",
        "Will the last lawsuit about the 2024 recount in {state} end by {day}?",
        "Will {state} certify its audit of the 2024 ballots by {day}?",
    ),
    "geopolitics": (
        "Will {country} and {neighbour} sign a border agreement by {day}?",
        "Will {country} reopen its embassy in {neighbour} before {day}?",
        "Will the UN Security Council adopt a resolution naming {neighbour} by {day}?",
    ),
    "economics": (
        "Will inflation in {country} for {month} {year} come in above {small}%?",
        "Will {bank} cut its policy rate by {day}?",
        "Will unemployment in {country} fall below {small}% in {month} {year}?",
        "Will {country} report negative GDP growth for any quarter of {year}?",
    ),
    "finance": (
        "Will the {index} close above its all-time high on any day before {day}?",
        "Will {company} report quarterly revenue above {billions} billion USD by {day}?",
        "Will the {index} lose more than {small}% in a single session before {day}?",
    ),
    "crypto": (
        "Will {coin} trade above {thousands},000 USD before {day}?",
        "Will {coin} outperform Bitcoin in {month} {year}?",
        "Will a spot {coin} fund be listed in {country} by {day}?",
        "Will {coin} have more than {percent} hours of downtime in {year}?",
    ),
    "technology": (
        "Will {company} announce a foldable device before {day}?",
        "Will {company} complete an acquisition above {billions} billion USD by {day}?",
        "Will {company} suffer an outage longer than {small} hours before {day}?",
    ),
    "ai": (
        "Will an openly licensed model top the {benchmark} leaderboard on {day}?",
        "Will any system score above {percent}% on {benchmark} by {day}?",
        "Will {country} enact a law on general-purpose AI before {day}?",
    ),
    "science": (
        "Will a replication of the {experiment} result be published by {day}?",
        "Will the {experiment} collaboration report a signal above five sigma before {day}?",
        "Will a paper about {experiment} have {thousands}00 citations by {day}?",
    ),
    "space": (
        "Will {rocket} reach orbit by {day}?",
        "Will {rocket} fly at least {few} times before {day}?",
        "Will {mission} lift off before {day}?",
    ),
    "climate": (
        "Will {month} {year} be the warmest {month} on record?",
        "Will Arctic sea ice extent fall below {small} million km² in {year}?",
        "Will {country} publish a {year} emissions target below {percent}% of 1990?",
    ),
    "weather": (
        "Will it snow in {city} before {day}?",
        "Will {city} record a temperature above {degrees} °C by {day}?",
        "Will more than {percent} mm of rain fall in {city} in {month} {year}?",
        "Will a named storm make landfall within 100 km of {city} by {day}?",
    ),
    "sports": (
        "Will {country} win at least {few} medals at the next world championships in {sport}?",
        "Will a world record in {sport} be broken before {day}?",
        "Will {city} be awarded the next world championships in {sport} by {day}?",
    ),
    "football": (
        "Will {club} beat {rival} in their next league match before {day}?",
        "Will {club} finish the {year} season above {rival}?",
        "Will {club} change head coach by {day}?",
    ),
    "Formula 1": (
        "Will the pole sitter win the race in {city} in {year}?",
        "Will the race in {city} see a safety car before lap {few}?",
        "Will a constructor be fined more than {billions} million EUR before {day}?",
    ),
    "esports": (
        "Will a team from {country} win the {year} world final in {game}?",
        "Will {game} have more than {thousands}0,000 concurrent players on {day}?",
    ),
    "health": (
        "Will the WHO end its alert for {disease} by {day}?",
        "Will {country} approve a new vaccine against {disease} before {day}?",
        "Will {country} report more than {thousands}00 cases of {disease} in {month} {year}?",
    ),
    "culture": (
        "Will {film} win best picture at the {year} awards?",
        "Will {film} score above {percent} with critics on {day}?",
        "Will {city} host the song contest before {day}?",
    ),
    "energy": (
        "Will Brent crude settle above {percent} USD a barrel before {day}?",
        "Will {country} generate more than {percent}% of its power from wind on any day before {day}?",
        "Will {country} connect a new reactor to its grid by {day}?",
    ),
}

#: Further categories a market may carry besides its primary one.
RELATED: Final[dict[str, tuple[str, ...]]] = {
    "politics": ("elections", "geopolitics", "economics"),
    "elections": ("politics", "u.s. 2024 elections"),
    "u.s. 2024 elections": ("elections", "politics"),
    "geopolitics": ("politics", "energy"),
    "economics": ("finance", "politics", "energy"),
    "finance": ("economics", "technology", "crypto"),
    "crypto": ("finance", "technology"),
    "technology": ("ai", "finance", "science"),
    "ai": ("technology", "science", "politics"),
    "science": ("space", "health", "R&D / funding"),
    "space": ("science", "technology", "R&D / funding"),
    "climate": ("weather", "science", "energy"),
    "weather": ("climate",),
    "sports": ("football", "culture"),
    "football": ("sports",),
    "Formula 1": ("sports", "technology"),
    "esports": ("sports", "culture", "technology"),
    "health": ("science", "politics"),
    "culture": ("sports", "technology"),
    "energy": ("economics", "climate", "geopolitics"),
}

ENTITIES: Final[dict[str, tuple[str, ...]]] = {
    "bank": ("the Federal Reserve", "the ECB", "the Bank of England", "the Riksbank", "the Bank of Japan"),
    "benchmark": ("GPQA", "SWE-bench", "ARC-AGI", "FrontierMath", "HELM"),
    "authority": ("Reuters", "the statistics office", "the organiser", "the official register", "the broadcaster"),
    "billions": ("2", "5", "12", "25", "40", "75", "110"),
    "city": (
        "Berlin", "São Paulo", "Nairobi", "Chicago", "Kraków", "Osaka", "Reykjavík", "Melbourne", "Marrakesh",
        "Montréal", "Côte-Saint-Luc", "Seoul", "Lima", "Zürich",
    ),
    "club": ("Ajax", "Celtic", "Benfica", "Bayern München", "Boca Juniors", "Al Ahly", "Fenerbahçe", "Real Betis"),
    "coin": ("Ethereum", "Solana", "Cardano", "Monero", "Litecoin", "Dogecoin", "Avalanche"),
    "company": ("Apple", "Nvidia", "Siemens", "Samsung", "Sony", "ASML", "Mercado Libre", "L'Oréal", "AT&T"),
    "country": (
        "Germany", "Brazil", "Kenya", "Japan", "Canada", "Poland", "Côte d'Ivoire", "New Zealand", "Mexico", "Norway",
        "India", "South Korea", "Italy", "Chile",
    ),
    "degrees": ("28", "31", "33", "35", "37", "40", "42"),
    "disease": ("mpox", "measles", "dengue", "cholera", "avian influenza", "malaria"),
    "experiment": ("muon g-2", "KATRIN", "XENONnT", "ALPHA-g", "Event Horizon", "IceCube", "JUNO"),
    "few": ("3", "4", "5", "7", "9", "12"),
    "film": ("The Long Winter", "Ñandú", "A Quiet Ledger", "Nocturne in E", "Paper Lanterns", "“Untitled”"),
    "game": ("Dota 2", "Counter-Strike 2", "League of Legends", "Rocket League", "StarCraft II"),
    "index": ("S&P 500", "DAX", "Nikkei 225", "FTSE 100", "Nasdaq-100", "Euro Stoxx 50"),
    "mission": ("Artemis III", "Europa Orbiter", "Dragonfly", "PLATO", "Chandrayaan-4", "Rosalind Franklin"),
    "neighbour": ("Argentina", "France", "Ethiopia", "Türkiye", "Ukraine", "Vietnam", "Egypt", "Finland"),
    "percent": ("35", "40", "45", "52", "60", "65", "72", "80", "90"),
    "rival": ("PSV", "Rangers", "Porto", "Dortmund", "River Plate", "Zamalek", "Galatasaray", "Sevilla"),
    "rocket": ("Starship", "New Glenn", "Ariane 6", "Vulcan", "Neutron", "Long March 10", "H3"),
    "small": ("1.5", "2.0", "2.5", "3.2", "4.0", "4.7", "5.5"),
    "sport": ("athletics", "swimming", "rowing", "judo", "biathlon", "table tennis", "track cycling"),
    "state": ("Georgia", "Arizona", "Nevada", "Michigan", "Wisconsin", "Pennsylvania", "North Carolina"),
    "thousands": ("2", "3", "5", "8", "12", "20", "50", "75"),
}  # fmt: skip

#: Which of every ten markets ask an awkward question: at first these three, later only the second, as in real life.
AWKWARD_OF_TEN: Final = (4, 8, 5)
#: One each within the first forty markets: category and a question that careless software garbles.
AWKWARD: Final[tuple[tuple[str, str], ...]] = (
    ("weather", "☃️ Will {city} have a white {month} {year}? 🌨️🌨️🌨️"),
    ("culture", "هل ستستضيف {city} المهرجان الدولي قبل {day}؟"),
    ("science", "האם ניסוי {experiment} יפרסם תוצאות לפני {day}?"),
    ("economics", "{year}年末までに{country}の株価指数は過去最高値を更新しますか？（{day}まで）"),  # noqa: RUF001
    (
        "culture",
        "Will Beyonce\u0301 play in Sa\u0303o Paulo or {city} by {day}? Tie\u0302\u0301ng Vie\u0323\u0302t, नमस्ते",
    ),
    ("politics", 'Will "{country}" say \'yes\' to the so-called "{percent}% rule" \\ "fair deal" by {day}?'),
    ("technology", "Will <b>{company}</b> ship <i>anything</i> &amp; survive <img src=x onerror=alert(1)> by {day}?"),
    ("ai", "</script><script>alert('{benchmark}')</script> Will a model break {benchmark} by {day}?"),
    ("crypto", "Will {coin} double\u2028before {day}?\u2029(two separators that JavaScript once took for line ends)"),
    (
        "geopolitics",
        (
            "Will {country} and {neighbour}, following the preliminary memorandum on customs, fisheries, rail gauges "
            "and mutual recognition of university degrees, and notwithstanding any reservation that either parliament "
            "may attach during ratification, deposit their instruments of ratification with the Secretary-General so "
            "that the treaty enters into force in all of its parts, the annexes on river navigation included, by {day}?"
        ),
    ),
    ("sports", "🇰🇷 {year}년 {sport} 세계선수권에서 한국이 우승할까요? 👩‍👩‍👧‍👦 ({city}, {day})"),
    ("esports", "Will {{{{ {game} }}}} print {{% raw %}} or %s or ${{jndi}} on {day}?"),
)

PARAGRAPHS: Final = (
    "This market resolves YES if the event named in the question has happened by {day}, as reported by {authority}.",
    "It resolves NO if {authority} has published nothing of the kind by then. Later corrections do not count.",
    "If the event becomes impossible, or {authority} stops publishing, the market is cancelled.",
    'What counts:\n- an official record\n- not: rumours, "sources close to the matter", screenshots of {month}',
    'See <a href="https://example.org/rules?a=1&b=2">the rules</a> — 中文, العربية and emoji 🎲 are welcome.',
    "Trading closes at the end of {day} in UTC, whatever the time zone of the event.",
)

#: Currency pair of an FX family, a level it trades at, and the distance between two members' thresholds.
CURRENCIES: Final = (
    ("EUR/USD", 1.08, 0.005),
    ("USD/JPY", 151.0, 0.5),
    ("GBP/USD", 1.27, 0.005),
    ("USD/CHF", 0.89, 0.0025),
)

PAUSE_REASONS: Final = (
    "awaiting a ruling on the question's wording",
    "the source is late; trading resumes when it has published",
    "Côte d'Ivoire result disputed <see comments>",
)
CREATION_SOURCES: Final = ("user", "user", "user", "staff", "api")
SPONSORS: Final = (None, None, None, None, "Open Forecasting Fund", "Müller & Söhne GmbH")


class MadeUpQuestion(NamedTuple):
    """A question of several markets, whose title has the `season`.

    `wanted` are the statuses, or resolutions, of the markets that it takes; `labels` are the answers of the first, the
    second and so on.
    """

    title: str
    kind: Literal["exclusive", "independent"]
    category: str
    wanted: tuple[str, ...]
    labels: tuple[str, ...]
    slug: str | None = None
    description: str | None = None
    is_ordered: bool = True
    is_hidden: bool = False


#: Which of every three markets may be in a question: texts of all kinds remain.
ASKED_OF_THREE: Final = (0, 1)
#: Those of a season: one with more members than a row shows, some settled or in part, one with a single member.
ASKED: Final = (
    MadeUpQuestion(
        "Who takes over the ministry in season {season}?", "exclusive", "politics", ("open",) * 2,
        ("the deputy", "an outsider"), slug="ministry", description="Nobody has approved this yet.", is_hidden=True,
    ),
    MadeUpQuestion(
        "Which club wins season {season} of the Harbour Cup?", "exclusive", "football", ("open",) * 14,
        (*ENTITIES["club"], *ENTITIES["rival"]), slug="harbour-cup",
        description="The winner of the final. If there is none, all of its markets are cancelled.",
    ),
    MadeUpQuestion(
        "Which city hosts edition {season} of the world games?", "exclusive", "sports", ("YES", "NO", "NO", "NO"),
        ENTITIES["city"], slug="world-games",
    ),
    MadeUpQuestion(
        "Which film wins best picture at award night {season}?", "exclusive", "culture",
        ("NO", "NO", "closed", "open", "open", "open"), ENTITIES["film"], slug="best-picture", is_ordered=False,
    ),
    MadeUpQuestion(
        "Which rockets reach orbit in launch window {season}?", "independent", "space",
        ("YES", "CANCEL", "cancelled", "open", "open", "open"), ENTITIES["rocket"], slug="launch-window",
    ),
    MadeUpQuestion(
        "How high does Ethereum trade in round {season}?", "independent", "crypto", ("open",) * 4,
        tuple(f"above {thousands},000 USD" for thousands in ENTITIES["thousands"]),
    ),
    MadeUpQuestion(
        "Who coaches the national team in year {season}?", "exclusive", "sports", ("closed",), ("the assistant",),
    ),
)  # fmt: skip
