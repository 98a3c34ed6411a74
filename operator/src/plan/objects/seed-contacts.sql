-- The built-in contacts: psql -v ON_ERROR_STOP=1 -v rows=10000 -f seed-contacts.sql, as the application's role.
-- Every value follows from the md5 of the row's number. The same number of rows gives the same table everywhere:
-- without clock, random numbers or dependence on the order of execution. examples/servers/README.md describes the
-- table.

SET client_encoding = 'UTF8';
SET client_min_messages = warning;

BEGIN;

DROP TABLE IF EXISTS contacts;

CREATE TABLE contacts (
    id integer PRIMARY KEY,
    uid text UNIQUE NOT NULL,
    vcard text NOT NULL,
    etag text NOT NULL,
    -- Last segment of the contact's path in the address book. A client may choose a name other than the UID.
    name text UNIQUE NOT NULL
) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);

WITH lists AS (
    SELECT
        '{Adèle,Bruno,Chloé,David,Élise,Farid,Gaëlle,Hugo,Inès,Jonas,Karin,Léo,Maëlys,Noé,Olga,Paul,'
        'Quentin,Rosa,Søren,Théo,Ursula,Viktor,Wanda,Xavier,Yasmine,Zoë,Anna,Björn,Clara,Łukasz,Maria,Nils}'::text[]
            AS given,
        '{Müller,Martin,García,Rossi,Nowak,Jansen,Dubois,Schmidt,Lefèvre,Svensson,Novák,Silva,Bernard,Weber,'
        'Moreau,Fischer,Laurent,Petit,Kowalski,Hansen,Fontaine,Meyer,Girard,Lindqvist,Bonnet,Keller,Roux,Vogel,'
        'Mercier,Horváth,Blanc,Brandt}'::text[]
            AS family,
        '{rue des Lilas,rue de la République,avenue Jean Jaurès,chemin du Moulin,Hauptstraße,Gartenweg,'
        'High Street,Mill Lane,Station Road,calle Mayor,via Garibaldi,Kungsgatan,place du Marché,Lindenallee,'
        'Church Road,quai de la Loire}'::text[]
            AS street,
        '{Nantes,Lyon,Grenoble,Toulouse,Köln,Freiburg,Zürich,Leeds,Bristol,Sevilla,Torino,Malmö,Kraków,Gent,'
        'Porto,Århus}'::text[]
            AS city,
        '{France,France,France,France,Germany,Germany,Switzerland,United Kingdom,United Kingdom,Spain,Italy,'
        'Sweden,Poland,Belgium,Portugal,Denmark}'::text[]
            AS country,
        '{Atelier du Vent,Boulangerie Centrale,Coopérative Verte,Éditions du Port,Imprimerie Nouvelle,'
        'Jardins Partagés,Librairie du Quai,Menuiserie Alpine}'::text[]
            AS organisation,
        '{Accountant,Carpenter,Engineer,Gardener,Librarian,Nurse,Teacher,Translator}'::text[]
            AS title
),
numbers AS (
    SELECT
        id,
        md5('contact ' || id) AS digest
    FROM generate_series(1, :rows) AS id
),
parts AS (
    SELECT
        id,
        overlay(overlay(digest PLACING '4' FROM 13) PLACING '8' FROM 17)::uuid::text AS uid,
        given[1 + get_byte(bytes, 0) % 32] AS given,
        family[1 + get_byte(bytes, 1) % 32] AS family,
        1 + get_byte(bytes, 2) AS house,
        street[1 + get_byte(bytes, 3) % 16] AS street,
        1 + get_byte(bytes, 4) % 16 AS place,
        city,
        country,
        lpad((10000 + (get_byte(bytes, 5) * 256 + get_byte(bytes, 6)) % 90000)::text, 5, '0') AS postcode,
        lpad(((get_byte(bytes, 7) * 65536 + get_byte(bytes, 8) * 256 + get_byte(bytes, 9)) % 100000000)::text, 8, '0')
            AS telephone,
        organisation[1 + get_byte(bytes, 10) % 8] AS organisation,
        title[1 + get_byte(bytes, 11) % 8] AS title,
        (date '1940-01-01' + (get_byte(bytes, 12) * 256 + get_byte(bytes, 13)) % 23000) AS birthday,
        (timestamp '2020-01-01' + make_interval(hours => (get_byte(bytes, 14) * 256 + get_byte(bytes, 15)) % 40000))
            AS revised,
        substr(digest, 1, 8) AS word
    FROM numbers
    CROSS JOIN lists
    CROSS JOIN LATERAL decode(digest, 'hex') AS bytes
),
cards AS (
    SELECT
        id,
        uid,
        -- Odd rows are vCard 3.0 (RFC 2426), even ones 4.0 (RFC 6350). No line is longer than 75 octets.
        CASE WHEN id % 2 = 1
            THEN ARRAY[
                'BEGIN:VCARD',
                'VERSION:3.0',
                'PRODID:-//Frugality//Contacts 0.1//EN',
                'UID:' || uid,
                'FN:' || given || ' ' || family,
                'N:' || family || ';' || given || ';;;',
                'ORG:' || organisation,
                'TITLE:' || title,
                'BDAY:' || to_char(birthday, 'YYYY-MM-DD'),
                'EMAIL;TYPE=INTERNET,PREF:contact.' || word || '@example.org',
                'EMAIL;TYPE=INTERNET,WORK:' || lower(title) || '.' || id || '@example.com',
                'TEL;TYPE=CELL,VOICE:+33 6 ' || telephone,
                'TEL;TYPE=WORK,VOICE:+33 2 ' || reverse(telephone),
                'ADR;TYPE=HOME:;;' || house || ' ' || street || ';' || city[place] || ';;' || postcode || ';'
                    || country[place],
                'URL:https://example.org/people/' || word,
                'CATEGORIES:Contacts,' || title,
                'REV:' || to_char(revised, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                'END:VCARD'
            ]
            ELSE ARRAY[
                'BEGIN:VCARD',
                'VERSION:4.0',
                'PRODID:-//Frugality//Contacts 0.1//EN',
                'UID:urn:uuid:' || uid,
                'FN:' || given || ' ' || family,
                'N:' || family || ';' || given || ';;;',
                'ORG:' || organisation,
                'TITLE:' || title,
                'BDAY:' || to_char(birthday, 'YYYYMMDD'),
                'EMAIL;TYPE=home;PREF=1:contact.' || word || '@example.org',
                'EMAIL;TYPE=work:' || lower(title) || '.' || id || '@example.com',
                'TEL;VALUE=uri;TYPE="cell,voice":tel:+336' || telephone,
                'TEL;VALUE=uri;TYPE="work,voice":tel:+332' || reverse(telephone),
                'ADR;TYPE=home:;;' || house || ' ' || street || ';' || city[place] || ';;' || postcode || ';'
                    || country[place],
                'URL:https://example.org/people/' || word,
                'CATEGORIES:Contacts,' || title,
                'REV:' || to_char(revised, 'YYYYMMDD"T"HH24MISS"Z"'),
                'END:VCARD'
            ]
        END AS lines
    FROM parts
),
vcards AS (
    SELECT
        id,
        uid,
        array_to_string(lines, E'\r\n') || E'\r\n' AS vcard
    FROM cards
)
INSERT INTO contacts (id, uid, vcard, etag, name)
SELECT
    id,
    uid,
    vcard,
    md5(vcard),
    uid || '.vcf'
FROM vcards
ORDER BY id;

COMMIT;

-- Also sets the hint bits and the visibility map. Otherwise the first trial would spend energy on them.
VACUUM (FREEZE, ANALYZE) contacts;
