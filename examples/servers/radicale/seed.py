"""The built-in contacts: the vCards of operator/src/plan/objects/seed-contacts.sql, byte for byte."""

import datetime
import hashlib
import uuid


def words(text: str) -> list[str]:
    return text.split(",")


GIVEN = words(
    "Adèle,Bruno,Chloé,David,Élise,Farid,Gaëlle,Hugo,Inès,Jonas,Karin,Léo,Maëlys,Noé,Olga,Paul,"
    "Quentin,Rosa,Søren,Théo,Ursula,Viktor,Wanda,Xavier,Yasmine,Zoë,Anna,Björn,Clara,Łukasz,Maria,Nils"
)
FAMILY = words(
    "Müller,Martin,García,Rossi,Nowak,Jansen,Dubois,Schmidt,Lefèvre,Svensson,Novák,Silva,Bernard,Weber,"
    "Moreau,Fischer,Laurent,Petit,Kowalski,Hansen,Fontaine,Meyer,Girard,Lindqvist,Bonnet,Keller,Roux,Vogel,"
    "Mercier,Horváth,Blanc,Brandt"
)
STREET = words(
    "rue des Lilas,rue de la République,avenue Jean Jaurès,chemin du Moulin,Hauptstraße,Gartenweg,"
    "High Street,Mill Lane,Station Road,calle Mayor,via Garibaldi,Kungsgatan,place du Marché,Lindenallee,"
    "Church Road,quai de la Loire"
)
CITY = words(
    "Nantes,Lyon,Grenoble,Toulouse,Köln,Freiburg,Zürich,Leeds,Bristol,Sevilla,Torino,Malmö,Kraków,Gent,"
    "Porto,Århus"
)
COUNTRY = words(
    "France,France,France,France,Germany,Germany,Switzerland,United Kingdom,United Kingdom,Spain,Italy,"
    "Sweden,Poland,Belgium,Portugal,Denmark"
)
ORGANISATION = words(
    "Atelier du Vent,Boulangerie Centrale,Coopérative Verte,Éditions du Port,Imprimerie Nouvelle,"
    "Jardins Partagés,Librairie du Quai,Menuiserie Alpine"
)
TITLE = words("Accountant,Carpenter,Engineer,Gardener,Librarian,Nurse,Teacher,Translator")


def contact(number: int) -> tuple[str, str]:
    """Return the name and the vCard of this row. All content follows from the md5 of the row's number."""
    digest = hashlib.md5(f"contact {number}".encode()).hexdigest()
    at = bytes.fromhex(digest)
    # SQL's overlay counts from 1.
    uid = str(uuid.UUID(digest[:12] + "4" + digest[13:16] + "8" + digest[17:]))
    given, family = GIVEN[at[0] % 32], FAMILY[at[1] % 32]
    title, organisation = TITLE[at[11] % 8], ORGANISATION[at[10] % 8]
    postcode = 10000 + int.from_bytes(at[5:7]) % 90000
    telephone = f"{int.from_bytes(at[7:10]) % 100000000:08}"
    place = at[4] % 16
    address = f";;{1 + at[2]} {STREET[at[3] % 16]};{CITY[place]};;{postcode:05};{COUNTRY[place]}"
    birthday = datetime.date(1940, 1, 1) + datetime.timedelta(days=int.from_bytes(at[12:14]) % 23000)
    revised = datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int.from_bytes(at[14:16]) % 40000)
    word = digest[:8]
    if number % 2 == 1:
        version, prefix, day, second = "3.0", "", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"
        reached = [
            f"EMAIL;TYPE=INTERNET,PREF:contact.{word}@example.org",
            f"EMAIL;TYPE=INTERNET,WORK:{title.lower()}.{number}@example.com",
            f"TEL;TYPE=CELL,VOICE:+33 6 {telephone}",
            f"TEL;TYPE=WORK,VOICE:+33 2 {telephone[::-1]}",
            f"ADR;TYPE=HOME:{address}",
        ]
    else:
        version, prefix, day, second = "4.0", "urn:uuid:", "%Y%m%d", "%Y%m%dT%H%M%SZ"
        reached = [
            f"EMAIL;TYPE=home;PREF=1:contact.{word}@example.org",
            f"EMAIL;TYPE=work:{title.lower()}.{number}@example.com",
            f'TEL;VALUE=uri;TYPE="cell,voice":tel:+336{telephone}',
            f'TEL;VALUE=uri;TYPE="work,voice":tel:+332{telephone[::-1]}',
            f"ADR;TYPE=home:{address}",
        ]
    lines = [
        "BEGIN:VCARD",
        f"VERSION:{version}",
        "PRODID:-//Frugality//Contacts 0.1//EN",
        f"UID:{prefix}{uid}",
        f"FN:{given} {family}",
        f"N:{family};{given};;;",
        f"ORG:{organisation}",
        f"TITLE:{title}",
        f"BDAY:{birthday:{day}}",
        *reached,
        f"URL:https://example.org/people/{word}",
        f"CATEGORIES:Contacts,{title}",
        f"REV:{revised:{second}}",
        "END:VCARD",
    ]
    return f"{uid}.vcf", "".join(f"{line}\r\n" for line in lines)
