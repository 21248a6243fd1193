"""The language of a text, by naive Bayes over groups of three letters.

    register operator languageOf(language text)
      from 'headgate.operators.examples.language:language_of';

    languageOf('fr')      languageOf(?language) and ?language != 'en'

The model is learned on import from a dozen sentences in each language (TEXTS): how likely each
group of three letters is in it. A text has the language in which its groups are likeliest, or none
if it has fewer than eight letters.

Quality: of 60 other sentences, ten in each language, 59 are classified correctly; of their first
three words, 54 (tests/operators/test_language.py). A seventh language is taken for one of the six.

Cost: 30 µs for each 100 letters of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from headgate.model.items import Item
from headgate.model.text import words
from headgate.model.values import Kind, kind_of
from headgate.operators.declaration import binds

TEXTS = {
    "de": """
        Heute Morgen war der Himmel grau, und die Leute gingen mit ihren Schirmen schnell zur
        Arbeit. In der kleinen Straße hinter dem Bahnhof gibt es eine Bäckerei, die schon um sechs
        Uhr geöffnet hat. Wer früh aufsteht, bekommt dort das beste Brot der Stadt. Die Regierung
        hat gestern ein neues Gesetz vorgestellt, über das noch lange gesprochen werden wird. Viele
        Menschen wissen nicht, ob sie dafür oder dagegen sind. Am Abend spielt eine Gruppe von
        jungen Musikern im Park, und danach wollen wir zusammen essen. Das Konzert ist nicht teuer,
        aber man muss die Karten vorher kaufen. Wenn es regnet, findet alles im großen Saal statt.
        Der Zug nach Hamburg hatte wieder einmal eine halbe Stunde Verspätung, weil ein Baum auf den
        Gleisen lag. Ich möchte auch einmal ans Meer fahren und ein paar Tage nichts tun. Könntest
        du mir bitte sagen, wie spät es jetzt ist? Wir haben den Schlüssel überall gesucht und ihn
        schließlich unter dem Tisch gefunden. Die Preise für Wohnungen sind in diesem Jahr noch
        höher als im letzten, und das macht vielen Familien Sorgen.
    """,
    "en": """
        This morning the sky was grey, and people walked quickly to work with their umbrellas. In
        the small street behind the station there is a bakery that opens at six o'clock. Whoever
        gets up early can buy the best bread in town there. Yesterday the government presented a new
        law that will be talked about for a long time. Many people do not know whether they are for
        it or against it. In the evening a group of young musicians will play in the park, and after
        that we want to eat together. The concert is not expensive, but you have to buy the tickets
        beforehand. If it rains, everything will take place in the large hall. The train to the
        north was half an hour late once again because a tree had fallen on the line. I would like
        to go to the sea for once and do nothing for a few days. Could you please tell me what time
        it is now? We looked for the key everywhere and found it under the table at last. The prices
        of houses are even higher this year than they were last year, which worries many families.
    """,
    "es": """
        Esta mañana el cielo estaba gris y la gente caminaba deprisa al trabajo con sus paraguas. En
        la pequeña calle detrás de la estación hay una panadería que abre a las seis. Quien se
        levanta temprano puede comprar allí el mejor pan de la ciudad. Ayer el gobierno presentó una
        nueva ley de la que se hablará durante mucho tiempo. Muchas personas no saben si están a
        favor o en contra. Por la noche un grupo de jóvenes músicos tocará en el parque, y después
        queremos cenar juntos. El concierto no es caro, pero hay que comprar las entradas antes. Si
        llueve, todo se hará en la sala grande. El tren del norte llegó otra vez con media hora de
        retraso porque un árbol había caído sobre la vía. Me gustaría ir al mar y no hacer nada unos
        días. ¿Podrías decirme qué hora es ahora? Buscamos la llave por todas partes y al final la
        encontramos debajo de la mesa. Los precios de las casas son este año aún más altos que el
        año pasado, y eso preocupa a muchas familias.
    """,
    "fr": """
        Ce matin le ciel était gris et les gens marchaient vite vers leur travail avec leurs
        parapluies. Dans la petite rue derrière la gare, il y a une boulangerie qui ouvre dès six
        heures. Celui qui se lève tôt peut y acheter le meilleur pain de la ville. Hier, le
        gouvernement a présenté une nouvelle loi dont on parlera encore longtemps. Beaucoup de gens
        ne savent pas s'ils sont pour ou contre. Ce soir, un groupe de jeunes musiciens jouera dans
        le parc, et après cela nous voulons manger ensemble. Le concert n'est pas cher, mais il faut
        acheter les billets à l'avance. S'il pleut, tout aura lieu dans la grande salle. Le train du
        nord avait encore une fois une demi-heure de retard parce qu'un arbre était tombé sur la
        voie. J'aimerais aller à la mer et ne rien faire pendant quelques jours. Pourrais-tu me dire
        quelle heure il est maintenant ? Nous avons cherché la clé partout et nous l'avons enfin
        trouvée sous la table. Les prix des maisons sont cette année encore plus élevés que l'année
        dernière, ce qui inquiète beaucoup de familles.
    """,
    "it": """
        Questa mattina il cielo era grigio e la gente camminava in fretta verso il lavoro con gli
        ombrelli. Nella piccola strada dietro la stazione c'è un fornaio che apre già alle sei. Chi
        si alza presto può comprare lì il pane migliore della città. Ieri il governo ha presentato
        una nuova legge di cui si parlerà ancora a lungo. Molte persone non sanno se sono a favore o
        contro. Questa sera un gruppo di giovani musicisti suonerà nel parco, e dopo vogliamo
        mangiare insieme. Il concerto non è caro, ma bisogna comprare i biglietti prima. Se piove,
        tutto si farà nella sala grande. Il treno del nord aveva di nuovo mezz'ora di ritardo perché
        un albero era caduto sui binari. Mi piacerebbe andare al mare e non fare niente per qualche
        giorno. Potresti dirmi che ore sono adesso? Abbiamo cercato la chiave dappertutto e alla
        fine l'abbiamo trovata sotto il tavolo. I prezzi delle case sono quest'anno ancora più alti
        dell'anno scorso, e questo preoccupa molte famiglie.
    """,
    "nl": """
        Vanmorgen was de lucht grijs en liepen de mensen met hun paraplu snel naar hun werk. In de
        kleine straat achter het station is een bakker die al om zes uur opengaat. Wie vroeg
        opstaat, kan daar het beste brood van de stad kopen. Gisteren heeft de regering een nieuwe
        wet voorgesteld waarover nog lang gepraat zal worden. Veel mensen weten niet of ze ervoor of
        ertegen zijn. Vanavond speelt een groep jonge muzikanten in het park, en daarna willen we
        samen eten. Het concert is niet duur, maar je moet de kaartjes van tevoren kopen. Als het
        regent, vindt alles plaats in de grote zaal. De trein uit het noorden had weer eens een half
        uur vertraging omdat er een boom op het spoor was gevallen. Ik zou graag een keer naar zee
        gaan en een paar dagen niets doen. Kun je mij zeggen hoe laat het nu is? We hebben de
        sleutel overal gezocht en hem uiteindelijk onder de tafel gevonden. De prijzen van huizen
        zijn dit jaar nog hoger dan vorig jaar, en daar maken veel gezinnen zich zorgen over.
    """,
}


LETTERS_MIN, LETTERS_MAX = 8, 5_000
_SMOOTHING = 0.1

LANGUAGES = tuple(sorted(TEXTS))


@binds("language")
def language_of(item: Item) -> Iterator[tuple[str]]:
    texts = (each for each in item.attributes.values() if isinstance(each, str))
    language = guess(" ".join(each for each in texts if kind_of(each) is Kind.TEXT))
    if language is not None:
        yield (language,)


def guess(text: str) -> str | None:
    """The likeliest language of a text, as its code of two letters."""
    groups = _groups(text[:LETTERS_MAX])
    if len(groups) < LETTERS_MIN:
        return None
    numbers = np.array([_NUMBERS.get(each, _UNKNOWN) for each in groups])
    return LANGUAGES[int(_LIKELIHOODS[numbers].sum(axis=0).argmax())]


def _groups(text: str) -> list[str]:
    """All groups of three letters in the words of a text, their ends included."""
    padded = f" {' '.join(words(text))} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def _learn() -> tuple[dict[str, int], npt.NDArray[np.float64]]:
    """A number for each group, and the logarithm of its likelihood in each language. The last row
    is for groups that were never seen."""
    counted = {code: Counter(_groups(text)) for code, text in TEXTS.items()}
    numbers = {group: at for at, group in enumerate(sorted(set().union(*counted.values())))}
    counts = np.zeros((len(numbers) + 1, len(LANGUAGES)))
    for column, code in enumerate(LANGUAGES):
        for group, count in counted[code].items():
            counts[numbers[group], column] = count
    smoothed = counts + _SMOOTHING
    return numbers, np.log(smoothed / smoothed.sum(axis=0))


_NUMBERS, _LIKELIHOODS = _learn()
_UNKNOWN = len(_NUMBERS)
