"""The texts of the demo: word lists, and one function per feed that writes a story from them.

A story has a title, a description, an author and a category. It is a function of a random generator
and of the tour stops of Muse. All feeds of the same minute get the same tour stops. News, posts and
photos of one concert therefore name the same city, and their titles are similar, so that the window
join of MusePhotoStream ([RoSeS §3.1]) finds pairs:

    MuseNews       Setlist: Muse live in Lyon          4 of 5 words in common: Jaccard 0.8
    MusicPhotos    Muse live in Lyon

The share of each kind of story is a constant in its function, and tests check the shares. All bands
but Muse, which the paper uses, are invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Band(NamedTuple):
    name: str
    genre: str


class Place(NamedTuple):
    """A city and its concert hall. Each city has one hall."""

    city: str
    venue: str


MUSE = Band("Muse", "rock")

BANDS = (
    MUSE,
    Band("Sluicegate", "rock"),
    Band("Northern Ditch", "rock"),
    Band("The Weir Sisters", "rock"),
    Band("Hollow Penstock", "rock"),
    Band("Millpond Quartet", "jazz"),
    Band("Blue Culvert", "jazz"),
    Band("Ada Lindqvist Trio", "jazz"),
    Band("Oxbow Lanterns", "folk"),
    Band("Tin Kettle", "folk"),
    Band("Delta Phase", "electronic"),
    Band("Nachtkanal", "electronic"),
    Band("Aqueduct Ensemble", "classical"),
    Band("Spillway Crew", "hip hop"),
)

PLACES = (
    Place("Lyon", "Halle Neuve"),
    Place("Paris", "Salle du Canal"),
    Place("Athens", "Pergola Stage"),
    Place("Heraklion", "Harbour Stage"),
    Place("Hamburg", "Speicher Neun"),
    Place("Vienna", "Kanalhof"),
    Place("Lisbon", "Doca Velha"),
    Place("Dublin", "Lock House"),
    Place("Ghent", "Sluishuis"),
    Place("Porto", "Ribeira Hall"),
    Place("Toulouse", "Le Bief"),
    Place("Leeds", "Weir Works"),
)

DESTINATIONS = (*(place.city for place in PLACES), "London", "London", "London Gatwick")

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = ("18:30", "19:00", "19:30", "20:00", "20:30", "21:00")

FRIENDS = ("Alice", "Bruno", "Chloé", "Dimitra", "Emil", "Farid", "Greta", "Hélène")
REPORTERS = (
    "Ines Calder",
    "Joris Vane",
    "Katia Moreau",
    "Lars Brook",
    "Mina Okafor",
    "Nikos Reed",
    "Olga Ferry",
)

ALBUMS = ("Low Water", "Paper Bridges", "Tidal Clock", "Nine Gates", "Salt and Wire", "Upstream")
INSTRUMENTS = ("the guitars", "the drums", "the bass", "the strings", "the organ", "the choir")
MOODS = ("loud", "quiet", "strange", "slow", "bright", "restless", "warm", "honest")
SUBJECTS = ("the encore", "first row", "sound check", "the lights", "last song", "the crowd")
DETAILS = ("second night added", "last tickets", "doors at eight", "sound check today")

EVENTS = (
    ("Book fair", "books", "Sixty publishers show what they print"),
    ("Flea market", "market", "Lamps, records and chairs from a hundred attics"),
    ("Open garden", "garden", "Roses, bees and a long table under the trees"),
    ("Film night", "film", "Three short films and a talk with those who made them"),
    ("Chess in the park", "games", "Forty boards are set up; beginners are welcome"),
    ("Poetry reading", "books", "New poems by five authors, read by themselves"),
)

MEALS = ("onion soup", "lentils", "plum cake", "fresh bread", "a huge omelette", "baked fish")
CHORES = (
    "painted the kitchen",
    "repaired the old bicycle",
    "planted tomatoes on the balcony",
    "cleaned out the cellar",
    "learned to bake bread",
    "walked along the canal",
)
SIGHTS = (
    "Fog over the canal",
    "Cat on the piano",
    "Breakfast on the roof",
    "Boats in the old lock",
    "Snow on the bridge",
    "Evening at the harbour",
)

STREETS = ("Mill Street", "Canal Row", "Lock Lane", "Station Road", "Bridge Square", "Quay Street")
LINES = ("tram 2", "tram 5", "bus 14", "bus 31", "the night train", "the ferry")
SKIES = ("heavy rain", "thick fog", "strong wind", "a clear night", "the first frost", "sunshine")

COMPANIES = (
    "ACME",
    "ACME",
    "ACME",
    "Bluefin Freight",
    "Carbon Loom",
    "Quarry and Sons",
    "Wattline",
)
PRODUCTS = (
    "anvils",
    "rocket skates",
    "giant magnets",
    "spring shoes",
    "iron seed",
    "portable doors",
)
SHOPS = ("rail.example", "rail.example", "fly.example", "ferry.example", "resale.example")


# --- the stories ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TourStops:
    """The places where Muse play tonight and tomorrow."""

    tonight: Place
    tomorrow: Place


@dataclass(frozen=True, slots=True)
class Story:
    """The text of one item. Each field is plain text on one line."""

    title: str
    description: str
    author: str
    category: str


Writer = Callable[[Random, TourStops], Story]


def event_announcement(random: Random, stops: TourStops) -> Story:
    """Two of three announce concerts; the others announce fairs, films and readings."""
    author, day, hour = "Event Desk", random.choice(DAYS), random.choice(HOURS)
    if random.random() < 1 / 3:
        name, category, text = random.choice(EVENTS)
        place = random.choice(PLACES)
        description = f"{text}. {place.venue}, {day}, from {hour}; entrance {_euros(random)}."
        return Story(f"{name} in {place.city}", description, author, category)
    band, place = _band_and_place(random, stops, of_muse=0.3)
    kind = random.choice(("concert", "concert", "late concert", "show"))
    description = (
        f"{band.name} give a {kind} at {place.venue} in {place.city} on {day} at {hour}. "
        f"Tickets from {_euros(random)}."
    )
    return Story(_event_title(random, band, place), description, author, band.genre)


def _event_title(random: Random, band: Band, place: Place) -> str:
    genre = band.genre.capitalize()
    patterns = (
        f"{genre}: {band.name} live in {place.city}",
        f"{genre} night: {band.name} live in {place.city}",
        f"{genre} at {place.venue}: {band.name}",
    )
    return random.choice(patterns)


def friend_post(random: Random, stops: TourStops) -> Story:
    """Half of the posts are about concerts, the other half about everyday life."""
    author, friend = random.sample(FRIENDS, 2)
    if random.random() < 0.5:
        return _everyday_post(random, author, friend)
    band, place = _band_and_place(random, stops, of_muse=0.4)
    day = random.choice(DAYS)
    title = random.choice(
        (
            f"Going to {band.name} in {place.city}",
            f"{band.name} live in {place.city}, who comes along?",
            f"Two tickets for {band.name}",
        )
    )
    description = random.choice(
        (
            f"The concert of {band.name} at {place.venue} is on {day}, and {friend} has a car. "
            f"There are {random.randint(2, 5)} seats left.",
            f"I paid {_euros(random)} for the concert in {place.city} on {day}. {friend} says that "
            f"{band.name} are {random.choice(MOODS)} this year.",
        )
    )
    return Story(title, description, author, "friends")


def _everyday_post(random: Random, author: str, friend: str) -> Story:
    chore, meal = random.choice(CHORES), random.choice(MEALS)
    title = f"{random.choice(DAYS)}: {chore}"
    description = (
        f"Today {friend} and I {chore}. It took {random.randint(2, 9)} hours. "
        f"Then we had {meal} and talked until {random.choice(HOURS)}."
    )
    return Story(title, description, author, "friends")


def followed_post(random: Random, stops: TourStops) -> Story:
    """Short posts by musicians, halls and critics. About half contain the word 'concert'."""
    band, place = _band_and_place(random, stops, of_muse=0.25)
    mood, hour = random.choice(MOODS), random.choice(HOURS)
    instruments, minutes = random.choice(INSTRUMENTS), random.randint(60, 160)
    title, description = random.choice(
        (
            (
                f"What a night with {band.name}",
                f"{minutes} minutes of concert at {place.venue}, {mood} from the first note on. "
                f"{band.name}, come back!",
            ),
            (
                f"{band.name} live in {place.city}: {hour}",
                f"The concert of {band.name} begins at {hour}. Bring your friends and your ears.",
            ),
            (
                f"{band.name} in the studio",
                f"Day {random.randint(2, 40)} of the recording. We moved {instruments} to the "
                f"other side of the room, and now it sounds {mood}.",
            ),
            (
                f"A {mood} record by {band.name}",
                f"I listened to {random.choice(ALBUMS)} {random.randint(2, 20)} times. It is "
                f"{instruments} that they do better than others.",
            ),
        )
    )
    return Story(title, description, band.name, band.genre)


def muse_news(random: Random, stops: TourStops) -> Story:
    """All stories are about Muse, half of them about tonight's concert."""
    here, there = stops.tonight, stops.tomorrow
    album, mood = random.choice(ALBUMS), random.choice(MOODS)
    instruments, count = random.choice(INSTRUMENTS), random.randint(9, 24)
    title, description = random.choice(
        (
            (
                f"Setlist: Muse live in {here.city}",
                f"Muse play {count} songs at {here.venue} tonight, {count // 3} of them from the "
                f"new album {album}. It will be {mood}, they say.",
            ),
            (
                f"Muse live in {here.city}: {random.choice(DETAILS)}",
                f"There are {count} tickets left at the box office of {here.venue}. "
                f"From {here.city} the band goes on to {there.city}.",
            ),
            (
                f"Tour diary: Muse in {here.city}",
                f"We came by boat, with {instruments} on deck. {here.venue} was {mood} at noon; "
                f"{count} of you were there already.",
            ),
            (
                f"Muse play {there.venue} in {there.city}",
                f"{there.city} is next on the tour. The stage has {count} metres, and room for "
                f"{instruments}.",
            ),
            (
                f"Muse about their new album {album}",
                f"The new album has {count} songs. The band calls it {mood}, and it begins with "
                f"{instruments}.",
            ),
            (
                f"How Muse recorded {album}",
                f"It took {count} days to record {instruments}. The first song was slow, then Muse "
                f"made it {mood}.",
            ),
        )
    )
    return Story(title, description, random.choice(REPORTERS), "rock")


def music_photo(random: Random, stops: TourStops) -> Story:
    band, place = _band_and_place(random, stops, of_muse=0.4)
    title = random.choice(
        (
            f"{band.name} live in {place.city}",
            f"{band.name} live in {place.city}, {random.choice(SUBJECTS)}",
            f"{band.name} at {place.venue}",
        )
    )
    frame = random.randint(100, 999)
    description = f"{random.choice(SUBJECTS).capitalize()} at {place.venue}. Frame {frame}."
    return Story(title, description, random.choice(REPORTERS), band.genre)


def friend_photo(random: Random, stops: TourStops) -> Story:
    """Half of the photos show a concert. The category is never a genre of music."""
    author, friend = random.sample(FRIENDS, 2)
    if random.random() < 0.5:
        title, place = random.choice(SIGHTS), random.choice(PLACES)
        description = f"{place.city}, {random.choice(HOURS)}, with {friend}."
        return Story(title, description, author, "holiday")
    band, place = _band_and_place(random, stops, of_muse=0.5)
    subject = random.choice(SUBJECTS)
    title = random.choice(
        (f"{band.name} live in {place.city}", f"{band.name} live in {place.city} with {friend}")
    )
    description = (
        f"Photo {random.randint(1, 400)} of the evening: {subject}. {friend} held my coat."
    )
    return Story(title, description, author, "evening")


def music_wire(random: Random, stops: TourStops) -> Story:
    band, place = _band_and_place(random, stops, of_muse=0.1)
    album, mood = random.choice(ALBUMS), random.choice(MOODS)
    day, count = random.choice(DAYS), random.randint(2, 30)
    title, description = random.choice(
        (
            (
                f"{band.name} announce a new album",
                f"{album} comes out on {day}. It has {count} songs, and the band calls it {mood}.",
            ),
            (
                f"{place.venue} reopens on {day}",
                f"After {count} months of building, {band.name} play the first evening in "
                f"{place.city}.",
            ),
            (
                f"{band.name} win the {place.city} prize for {band.genre}",
                f"The jury heard {count} bands and praised {random.choice(INSTRUMENTS)} of "
                f"{album}.",
            ),
            (
                f"{band.name} look for a drummer",
                f"Whoever plays in a {mood} way may call until {day}. {count} have done so.",
            ),
        )
    )
    return Story(title, description, random.choice(REPORTERS), band.genre)


def city_news(random: Random, stops: TourStops) -> Story:  # noqa: ARG001
    street, line = random.choice(STREETS), random.choice(LINES)
    day, hour, minutes = (
        random.choice(DAYS),
        random.choice(HOURS),
        random.randint(5, 55),
    )
    sky = random.choice(SKIES)
    title, description, category = random.choice(
        (
            (
                f"Delays on {line}",
                f"Works in {street} hold up {line} by {minutes} minutes until {hour} on {day}.",
                "traffic",
            ),
            (
                f"{sky.capitalize()} expected on {day}",
                f"The weather office expects {sky} from {hour} on, for about {minutes} hours.",
                "weather",
            ),
            (
                f"{street} gets {minutes} new trees",
                f"The council has voted for limes and planes. Planting begins on {day} at {hour}.",
                "council",
            ),
        )
    )
    return Story(title, description, random.choice(REPORTERS), category)


def _band_and_place(random: Random, stops: TourStops, *, of_muse: float) -> tuple[Band, Place]:
    """The band and place of a concert; `of_muse` is the probability that the band is Muse."""
    if random.random() < of_muse:
        return MUSE, stops.tonight
    return random.choice(BANDS[1:]), random.choice(PLACES)


def _euros(random: Random) -> str:
    return f"{random.randint(9, 89)} euros"
