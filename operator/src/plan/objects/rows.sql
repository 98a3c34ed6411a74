-- Rows and digest of the seeded table: psql -v table=contacts -f rows.sql, as the application's role.
-- The digest is a sum of 64-bit hashes. It does not depend on the order of the rows and needs no sort. Candidates
-- can create functions, and settings of their role, that change the meaning of names. Therefore only PostgreSQL's
-- own names are looked up.
SET search_path = pg_catalog;

SELECT
    coalesce(
        to_regclass(format('%I.%I', current_user, :'table'))::text,
        to_regclass(format('public.%I', :'table'))::text,
        quote_ident(:'table')
    ) AS seeded
\gset

SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM :seeded AS t;
