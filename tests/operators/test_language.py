"""How often the language of sentences is recognised that the model was not trained on."""

from __future__ import annotations

import pytest
from tests.operators.runtime_calls import INSTANT

from headgate.model.items import Item
from headgate.operators.examples.language import LANGUAGES, guess, language_of

UNSEEN = {
    "de": """Der Bürgermeister eröffnete die Ausstellung mit einer kurzen Rede.
        Nach dem Spiel feierten die Anhänger bis tief in die Nacht.
        Die Forscher entdeckten eine unbekannte Käferart im Regenwald.
        Bitte beachten Sie, dass der Aufzug außer Betrieb ist.
        Seine Großmutter erzählte ihm Geschichten aus ihrer Kindheit.
        Das Wasser im Fluss steigt seit drei Tagen.
        Auf dem Markt werden frische Äpfel und Birnen angeboten.
        Das Schiff verließ den Hafen kurz vor Mitternacht.
        Die Schülerin löste die Aufgabe schneller als alle anderen.
        Ohne Strom bleibt die Küche heute kalt.""",
    "en": """The mayor opened the exhibition with a short speech.
        After the match the supporters celebrated deep into the night.
        Researchers discovered an unknown kind of beetle in the rainforest.
        Please note that the lift is out of order.
        His grandmother told him stories from her childhood.
        The water in the river has been rising for three days.
        Fresh apples and pears are offered at the market.
        The ship left the harbour shortly before midnight.
        The pupil solved the problem faster than all the others.
        Without power the kitchen remains cold today.""",
    "es": """El alcalde inauguró la exposición con un breve discurso.
        Después del partido los aficionados celebraron hasta la madrugada.
        Los investigadores descubrieron un escarabajo desconocido en la selva.
        Tenga en cuenta que el ascensor no funciona.
        Su abuela le contaba historias de su infancia.
        El agua del río sube desde hace tres días.
        En el mercado se ofrecen manzanas y peras frescas.
        El barco salió del puerto poco antes de medianoche.
        La alumna resolvió el problema más rápido que los demás.
        Sin electricidad la cocina se queda fría hoy.""",
    "fr": """Le maire a ouvert l'exposition par un bref discours.
        Après le match, les supporters ont fêté jusque tard dans la nuit.
        Des chercheurs ont découvert un scarabée inconnu dans la forêt.
        Veuillez noter que l'ascenseur est hors service.
        Sa grand-mère lui racontait des histoires de son enfance.
        L'eau du fleuve monte depuis trois jours.
        On propose des pommes et des poires fraîches au marché.
        Le bateau a quitté le port peu avant minuit.
        L'élève a résolu le problème plus vite que tous les autres.
        Sans courant, la cuisine reste froide aujourd'hui.""",
    "it": """Il sindaco ha aperto la mostra con un breve discorso.
        Dopo la partita i tifosi hanno festeggiato fino a tarda notte.
        I ricercatori hanno scoperto uno scarabeo sconosciuto nella foresta.
        Si prega di notare che l'ascensore è fuori servizio.
        Sua nonna gli raccontava storie della sua infanzia.
        L'acqua del fiume sale da tre giorni.
        Al mercato si offrono mele e pere fresche.
        La nave ha lasciato il porto poco prima di mezzanotte.
        L'alunna ha risolto il problema più velocemente degli altri.
        Senza corrente la cucina oggi resta fredda.""",
    "nl": """De burgemeester opende de tentoonstelling met een korte toespraak.
        Na de wedstrijd vierden de supporters feest tot diep in de nacht.
        Onderzoekers ontdekten een onbekende kever in het regenwoud.
        Houd er rekening mee dat de lift buiten gebruik is.
        Zijn grootmoeder vertelde hem verhalen uit haar jeugd.
        Het water in de rivier stijgt al drie dagen.
        Op de markt worden verse appels en peren aangeboden.
        Het schip verliet de haven kort voor middernacht.
        De leerling loste de opgave sneller op dan alle anderen.
        Zonder stroom blijft de keuken vandaag koud.""",
}


def sentences() -> list[tuple[str, str]]:
    return [(code, line.strip()) for code, text in UNSEEN.items() for line in text.splitlines()]


def right(words: int) -> int:
    return sum(guess(" ".join(text.split()[:words])) == code for code, text in sentences())


def test_the_stated_share_of_sentences_is_classified_correctly() -> None:
    assert len(sentences()) == 60
    assert set(UNSEEN) == set(LANGUAGES)
    assert (right(words=100), right(words=3)) == (59, 54)


@pytest.mark.parametrize("text", ["", "1234", "ok", "!!! ???", "\ud800"])
def test_short_texts_have_no_language(text: str) -> None:
    assert guess(text) is None


def test_all_texts_of_an_item_are_classified_together() -> None:
    item = Item(
        "i", "News", INSTANT, {"title": "Le maire", "description": "a ouvert la gare", "n": 5}
    )
    assert list(language_of(item)) == [("fr",)]
    assert list(language_of(Item("i", "News", INSTANT, {}))) == []
