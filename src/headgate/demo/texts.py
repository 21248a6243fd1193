"""Stories: a title, a text, an author and a category, made from patterns and the word lists.

Each kind of feed has a writer here: a function of a source of randomness and of the scene, which is
where Muse play tonight. All feeds of one minute share a scene, so that the news of a concert, what
friends say of it and the photos they take speak of the same city, and the titles are similar where
they should be ([RoSeS §3.1], MusePhotoStream):

    MuseNews       Setlist: Muse live in Lyon          4 of 5 words in common: Jaccard 0.8
    MusicPhotos    Muse live in Lyon

How often a kind of story comes is stated as a share, and the tests count what a newcomer sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from headgate.demo import words
from headgate.demo.words import MUSE, Band, Place


@dataclass(frozen=True, slots=True)
class Scene:
    """Where Muse play tonight, and where they go from there."""

    tonight: Place
    tomorrow: Place


@dataclass(frozen=True, slots=True)
class Story:
    """What an author hands in. All of it is plain text on one line."""

    title: str
    description: str
    author: str
    category: str


Writer = Callable[[Random, Scene], Story]


def event_announcement(random: Random, scene: Scene) -> Story:
    """Two of three announce concerts, and half of those are rock."""
    author, day, hour = "Event Desk", random.choice(words.DAYS), random.choice(words.HOURS)
    if random.random() < 1 / 3:
        name, category, text = random.choice(words.EVENTS)
        place = random.choice(words.PLACES)
        description = f"{text}. {place.venue}, {day}, from {hour}; entrance {_euros(random)}."
        return Story(f"{name} in {place.city}", description, author, category)
    band, place = _band_and_place(random, scene, of_muse=0.3)
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


def friend_post(random: Random, scene: Scene) -> Story:
    """Half are about concerts, the others about life."""
    author, friend = random.sample(words.FRIENDS, 2)
    if random.random() < 0.5:
        return _everyday_post(random, author, friend)
    band, place = _band_and_place(random, scene, of_muse=0.4)
    day = random.choice(words.DAYS)
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
            f"{band.name} are {random.choice(words.MOODS)} this year.",
        )
    )
    return Story(title, description, author, "friends")


def _everyday_post(random: Random, author: str, friend: str) -> Story:
    chore, meal = random.choice(words.CHORES), random.choice(words.MEALS)
    title = f"{random.choice(words.DAYS)}: {chore}"
    description = (
        f"Today {friend} and I {chore}. It took {random.randint(2, 9)} hours. "
        f"Then we had {meal} and talked until {random.choice(words.HOURS)}."
    )
    return Story(title, description, author, "friends")


def followed_post(random: Random, scene: Scene) -> Story:
    """Short posts by musicians, halls and critics; every other one says 'concert'."""
    band, place = _band_and_place(random, scene, of_muse=0.25)
    mood, hour = random.choice(words.MOODS), random.choice(words.HOURS)
    instruments, minutes = random.choice(words.INSTRUMENTS), random.randint(60, 160)
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
                f"I listened to {random.choice(words.ALBUMS)} {random.randint(2, 20)} times. It is "
                f"{instruments} that they do better than others.",
            ),
        )
    )
    return Story(title, description, band.name, band.genre)


def muse_news(random: Random, scene: Scene) -> Story:
    """All of it is about Muse; half of it about tonight."""
    here, there = scene.tonight, scene.tomorrow
    album, mood = random.choice(words.ALBUMS), random.choice(words.MOODS)
    instruments, count = random.choice(words.INSTRUMENTS), random.randint(9, 24)
    title, description = random.choice(
        (
            (
                f"Setlist: Muse live in {here.city}",
                f"Muse play {count} songs at {here.venue} tonight, {count // 3} of them from the "
                f"new album {album}. It will be {mood}, they say.",
            ),
            (
                f"Muse live in {here.city}: {random.choice(words.DETAILS)}",
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
    return Story(title, description, random.choice(words.REPORTERS), "rock")


def music_photo(random: Random, scene: Scene) -> Story:
    band, place = _band_and_place(random, scene, of_muse=0.4)
    title = random.choice(
        (
            f"{band.name} live in {place.city}",
            f"{band.name} live in {place.city}, {random.choice(words.MOMENTS)}",
            f"{band.name} at {place.venue}",
        )
    )
    frame = random.randint(100, 999)
    description = f"{random.choice(words.MOMENTS).capitalize()} at {place.venue}. Frame {frame}."
    return Story(title, description, random.choice(words.REPORTERS), band.genre)


def friend_photo(random: Random, scene: Scene) -> Story:
    """Every other photo is of a concert; their category is never that of the music."""
    author, friend = random.sample(words.FRIENDS, 2)
    if random.random() < 0.5:
        title, place = random.choice(words.SIGHTS), random.choice(words.PLACES)
        description = f"{place.city}, {random.choice(words.HOURS)}, with {friend}."
        return Story(title, description, author, "holiday")
    band, place = _band_and_place(random, scene, of_muse=0.5)
    moment = random.choice(words.MOMENTS)
    title = random.choice(
        (f"{band.name} live in {place.city}", f"{band.name} live in {place.city} with {friend}")
    )
    description = f"Photo {random.randint(1, 400)} of the evening: {moment}. {friend} held my coat."
    return Story(title, description, author, "evening")


def music_wire(random: Random, scene: Scene) -> Story:
    band, place = _band_and_place(random, scene, of_muse=0.1)
    album, mood = random.choice(words.ALBUMS), random.choice(words.MOODS)
    day, count = random.choice(words.DAYS), random.randint(2, 30)
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
                f"The jury heard {count} bands and praised {random.choice(words.INSTRUMENTS)} of "
                f"{album}.",
            ),
            (
                f"{band.name} look for a drummer",
                f"Whoever plays in a {mood} way may call until {day}. {count} have done so.",
            ),
        )
    )
    return Story(title, description, random.choice(words.REPORTERS), band.genre)


def city_news(random: Random, scene: Scene) -> Story:  # noqa: ARG001
    street, line = random.choice(words.STREETS), random.choice(words.LINES)
    day, hour, minutes = (
        random.choice(words.DAYS),
        random.choice(words.HOURS),
        random.randint(5, 55),
    )
    sky = random.choice(words.SKIES)
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
    return Story(title, description, random.choice(words.REPORTERS), category)


def _band_and_place(random: Random, scene: Scene, *, of_muse: float) -> tuple[Band, Place]:
    """A concert. Muse play where they are tonight, all others anywhere."""
    if random.random() < of_muse:
        return MUSE, scene.tonight
    return random.choice(words.BANDS[1:]), random.choice(words.PLACES)


def _euros(random: Random) -> str:
    return f"{random.randint(9, 89)} euros"
