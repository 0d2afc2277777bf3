# A predictor goes where its database goes: pg_dump and restore into another server, another schema's extension, another encoding.
# Predictions there are the same, bit for bit.
use strict;
use warnings;
use utf8;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Everything that was predicted, to the last bit (float8 prints exactly).
my $fingerprint = q{SELECT md5(string_agg("my models".ag_predict('cost', e)::text, ' ' ORDER BY e::text)) FROM expenses e};
my $classes = q{SELECT md5(string_agg("my models".ag_predict_proba('region', e)::text, ' ' ORDER BY e::text)) FROM expenses e};

my $from = PostgreSQL::Test::Cluster->new('from');
$from->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$from->start;
$from->safe_psql('postgres', 'CREATE DATABASE "büro 1"');
my $database = 'büro 1';
utf8::encode($database);

$from->safe_psql($database, 'CREATE SCHEMA "my models"; CREATE EXTENSION ag_pg SCHEMA "my models"');
$from->safe_psql($database, slurp_file('test/demo_data.sql'));
$from->safe_psql($database, q{UPDATE expenses SET region = 'ñandú' WHERE region = 'northeast'});
$from->safe_psql($database, q{SELECT "my models".ag_fit('expenses', 'expense', '{"name": "cost", "verbosity": 0, "time_limit": 60}')});
$from->safe_psql($database, q{SELECT "my models".ag_fit('expenses', 'region', '{"name": "region", "verbosity": 0, "time_limit": 60}')});
my $cost = $from->safe_psql($database, $fingerprint);
my $region = $from->safe_psql($database, $classes);
like($cost, qr/^[0-9a-f]{32}$/, 'a database with a blank and an umlaut in its name predicts');

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$from->command_ok([ 'pg_dump', '-d', $from->connstr . " dbname='$database'", '-f', $dump ], 'pg_dump');

my $to = PostgreSQL::Test::Cluster->new('to');
$to->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$to->start;
for my $encoding ('UTF8', 'LATIN1')
{
	$to->safe_psql('postgres', "CREATE DATABASE restored_$encoding TEMPLATE template0 ENCODING '$encoding'");
	$to->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $to->connstr("restored_" . lc $encoding), '-f', $dump ], "restore into $encoding");
	# Texts sort by bytes, and bytes differ between encodings: order by what doesn't.
	is($to->safe_psql("restored_" . lc $encoding, $fingerprint), $cost, "numbers are the same in $encoding") if $encoding eq 'UTF8';
	is($to->safe_psql("restored_" . lc $encoding, $classes), $region, "probabilities are the same in $encoding") if $encoding eq 'UTF8';
}
my $by_number = q{SELECT md5(string_agg("my models".ag_predict('cost', e)::text, ' ' ORDER BY age, bmi, "Expense")) FROM expenses e};
is($to->safe_psql('restored_latin1', $by_number), $from->safe_psql($database, $by_number), 'numbers are the same in LATIN1');

# The next version goes on counting, and what was dropped leaves nothing.
$to->safe_psql('restored_utf8', q{SELECT "my models".ag_fit('expenses', 'expense', '{"name": "cost", "verbosity": 0, "time_limit": 60}')});
is($to->safe_psql('restored_utf8', q{SELECT max(version) FROM "my models".ag_predictor WHERE name = 'cost'}), '2', 'a fit after the restore is version 2');
$to->safe_psql('restored_utf8', 'DROP EXTENSION ag_pg');
is($to->safe_psql('restored_utf8', q{SELECT count(*) FROM pg_proc WHERE proname LIKE 'ag\_%'}), '0', 'DROP EXTENSION leaves no function');
is($to->safe_psql('restored_utf8', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'ag\_%'}), '0', 'DROP EXTENSION leaves no table');
is($to->safe_psql('restored_utf8', q{SELECT count(*) FROM pg_language WHERE lanname LIKE 'ag\_%'}), '0', 'DROP EXTENSION leaves no language');

done_testing();
