-- The state of a database next to its seeded table, as one digest per kind of object. It runs after rows.sql, in
-- the same session. The digests cover definitions and sizes, without object identifiers: the same seed gives the
-- same digests in another cluster. The sizes reveal dead rows that a candidate leaves in the template.
BEGIN;

SELECT set_config('frugality.seeded', :'seeded', true) AS ignored
\gset

-- The rows of all other tables. A custom setting carries them to the query below.
DO $$
DECLARE
    one regclass;
    lines text := '';
    line text;
BEGIN
    FOR one IN
        SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'm') AND c.oid IS DISTINCT FROM to_regclass(current_setting('frugality.seeded'))
            AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
        ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
    LOOP
        EXECUTE format(
            'SELECT count(*) || '' '' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM %s AS t', one
        ) INTO line;
        lines := lines || one::text || ' ' || line || E'\n';
    END LOOP;
    PERFORM set_config('frugality.rows', lines, true);
END
$$;

WITH namespaces AS (
    SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
),
things (kind, definition) AS (
    SELECT 'rows', current_setting('frugality.rows')
    UNION ALL
    SELECT 'schemas', nspname || ' ' || coalesce(obj_description(oid, 'pg_namespace'), '') FROM namespaces
    UNION ALL
    SELECT 'tables', format(
        '%s.%s %s %s %s %s %s %s', n.nspname, c.relname, c.relkind, c.relpersistence, c.reloptions, c.relrowsecurity,
        c.relreplident, pg_relation_size(c.oid)
    )
    FROM pg_class c JOIN namespaces n ON n.oid = c.relnamespace
    UNION ALL
    SELECT 'columns', format(
        '%s.%s %s %s %s %s %s %s %s %s', n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        a.attnotnull, a.attstorage, a.attoptions, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), a.attstattarget
    )
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN namespaces n ON n.oid = c.relnamespace
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'indexes', format('%s %s %s', pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisclustered)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN namespaces n ON n.oid = c.relnamespace
    UNION ALL
    SELECT 'constraints', format('%s.%s %s', n.nspname, o.conname, pg_get_constraintdef(o.oid))
    FROM pg_constraint o JOIN namespaces n ON n.oid = o.connamespace
    UNION ALL
    SELECT 'views', format('%s.%s %s', n.nspname, c.relname, pg_get_viewdef(c.oid))
    FROM pg_class c JOIN namespaces n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')
    UNION ALL
    SELECT 'rules', pg_get_ruledef(r.oid)
    FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN namespaces n ON n.oid = c.relnamespace
    UNION ALL
    SELECT 'functions', format(
        '%s.%s(%s) %s %s %s %s %s', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), p.prokind,
        p.provolatile, p.prosecdef, p.proconfig, p.prosrc
    )
    FROM pg_proc p JOIN namespaces n ON n.oid = p.pronamespace
    UNION ALL
    SELECT 'triggers', format('%s %s', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN namespaces n ON n.oid = c.relnamespace
    WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'sequences', format('%s.%s %s %s', schemaname, sequencename, increment_by, last_value) FROM pg_sequences
    UNION ALL
    SELECT 'types', format('%s.%s %s %s', n.nspname, t.typname, t.typtype, format_type(t.typbasetype, t.typtypmod))
    FROM pg_type t JOIN namespaces n ON n.oid = t.typnamespace
    UNION ALL
    SELECT 'operators', format('%s.%s %s', n.nspname, o.oprname, o.oprcode::regprocedure)
    FROM pg_operator o JOIN namespaces n ON n.oid = o.oprnamespace
    UNION ALL
    SELECT 'policies', format(
        '%s %s %s %s', p.polrelid::regclass, p.polname, pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid)
    )
    FROM pg_policy p
    UNION ALL
    SELECT 'statistics', pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
    UNION ALL
    SELECT 'extensions', extname || ' ' || extversion FROM pg_extension
    UNION ALL
    SELECT 'databases', datname FROM pg_database
    UNION ALL
    SELECT 'roles', format(
        '%s %s %s %s %s %s', r.rolname, r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolreplication, r.rolconnlimit
    )
    FROM pg_roles r WHERE r.rolname !~ '^pg_'
    UNION ALL
    SELECT 'settings', format('%s %s %s', d.datname, r.rolname, s.setconfig)
    FROM pg_db_role_setting s
    LEFT JOIN pg_database d ON d.oid = s.setdatabase
    LEFT JOIN pg_roles r ON r.oid = s.setrole
    UNION ALL
    SELECT 'settings', format('%s %s %s', name, setting, source)
    FROM pg_settings
    WHERE source NOT IN ('default', 'client', 'session') AND name !~ '^frugality\.'
)
SELECT string_agg(kind || '=' || digest, ' ' ORDER BY kind COLLATE "C")
FROM (
    SELECT kind, left(md5(string_agg(definition, E'\n' ORDER BY definition COLLATE "C")), 12) AS digest
    FROM things
    GROUP BY kind
) AS digests;

COMMIT;
