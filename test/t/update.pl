# ALTER EXTENSION ag_pg UPDATE from every version that was ever released leaves exactly what a fresh CREATE EXTENSION makes. The comparison is itself
# tested, by changes of each kind that it must see.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

# All that belongs to the extension, as text; without OIDs, which say nothing.
my $everything = q{
	WITH member AS (
		SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS name,
			coalesce(obj_description(d.objid, d.classid::regclass::name), '') AS comment
		FROM pg_depend d WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
			AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')),
	line AS (
		SELECT name || ' comment ' || comment AS l FROM member
		UNION ALL SELECT concat_ws(' ', m.name, pg_get_functiondef(p.oid), p.proowner::regrole, p.proacl) FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, c.relkind, c.relowner::regrole, c.relacl, c.reloptions, CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END)
			FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, a.attcollation::regcollation, a.attacl,
				pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum))
			FROM member m JOIN pg_attribute a ON m.classid = 'pg_class'::regclass AND a.attrelid = m.objid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		UNION ALL SELECT concat_ws(' ', m.name, c.conname, pg_get_constraintdef(c.oid)) FROM member m JOIN pg_constraint c ON m.classid = 'pg_class'::regclass AND c.conrelid = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, pg_get_indexdef(i.indexrelid)) FROM member m JOIN pg_index i ON m.classid = 'pg_class'::regclass AND i.indrelid = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, pg_get_triggerdef(t.oid)) FROM member m JOIN pg_trigger t ON m.classid = 'pg_class'::regclass AND t.tgrelid = m.objid AND NOT t.tgisinternal
		UNION ALL SELECT concat_ws(' ', m.name, pg_get_ruledef(r.oid)) FROM member m JOIN pg_rewrite r ON m.classid = 'pg_class'::regclass AND r.ev_class = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle)
			FROM member m JOIN pg_sequence s ON m.classid = 'pg_class'::regclass AND s.seqrelid = m.objid
		UNION ALL SELECT concat_ws(' ', m.name, l.lanowner::regrole, l.lanpltrusted, l.lanplcallfoid::regproc, l.lanvalidator::regproc, l.lanacl)
			FROM member m JOIN pg_language l ON m.classid = 'pg_language'::regclass AND l.oid = m.objid
		UNION ALL SELECT concat_ws(' ', 'dumped', c.config::regclass, c.condition) FROM pg_extension e, unnest(extconfig, extcondition) AS c (config, condition) WHERE extname = 'ag_pg'
		UNION ALL SELECT concat_ws(' ', 'extension', extversion, extrelocatable, extnamespace::regnamespace) FROM pg_extension WHERE extname = 'ag_pg')
	SELECT l FROM line ORDER BY l COLLATE "C"};

$node->safe_psql('postgres', 'CREATE EXTENSION ag_pg');
my $fresh = $node->safe_psql('postgres', $everything);
like($fresh, qr/^dumped ag_predictor/m, 'a fresh extension is described');
for my $change (
	q{ALTER FUNCTION ag_predict(text, record) COST 7}, q{COMMENT ON FUNCTION ag_drop(text) IS 'other'},
	q{REVOKE EXECUTE ON FUNCTION ag_drop(text) FROM PUBLIC}, q{ALTER EXTENSION ag_pg DROP FUNCTION ag_drop(text)},
	q{ALTER TABLE ag_predictor ADD COLUMN more int}, q{ALTER TABLE ag_predictor ALTER COLUMN data DROP NOT NULL},
	q{ALTER TABLE ag_member_part ALTER COLUMN data SET STORAGE MAIN}, q{GRANT SELECT ON ag_predictor TO PUBLIC},
	q{CREATE INDEX ON ag_job (owner)}, q{ALTER TABLE ag_job DROP CONSTRAINT ag_job_state_check}, q{ALTER VIEW ag_models SET (security_barrier = off)},
	q{ALTER SEQUENCE ag_job_id_seq CYCLE}, q{UPDATE pg_extension SET extcondition[6] = '' WHERE extname = 'ag_pg'})
{
	isnt($node->safe_psql('postgres', "BEGIN; $change; $everything; ROLLBACK"), $fresh, "a difference would be seen: $change");
}
is($node->safe_psql('postgres', $everything), $fresh, 'and none is where there is none');

# a version from which no way leads to this one would be a version that nobody can leave
is( $node->safe_psql('postgres', q{SELECT p.source FROM pg_available_extensions e, pg_extension_update_paths('ag_pg') p
		WHERE e.name = 'ag_pg' AND p.target = e.default_version AND p.path IS NULL}),
	'', 'every version can be updated');
my @old = split /\n/, $node->safe_psql('postgres', q{SELECT v.version FROM pg_available_extension_versions v JOIN pg_available_extensions e USING (name) WHERE name = 'ag_pg' AND v.version <> e.default_version});
note 'older versions: ' . (@old ? "@old" : 'none yet');
for my $version (@old)
{
	(my $database = "from_$version") =~ s/\W/_/g;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION ag_pg VERSION '$version'; ALTER EXTENSION ag_pg UPDATE");
	is($node->safe_psql($database, $everything), $fresh, "updated from $version: as when it is new");
}
my ($rc, $stdout, $stderr) = $node->psql('postgres', 'ALTER EXTENSION ag_pg UPDATE');
is($rc, 0, 'an update to the version at hand is none');
like($stderr, qr/already installed/, 'and says so');

$node->stop;
done_testing();
