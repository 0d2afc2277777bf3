# Fits don't stand in the way of the server: it stops at once, other databases can be dropped, checkpoints go on; and a fit that a
# shutdown ends leaves nothing.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('shutdown');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\n");
$node->start;
make_data($node);

# the story of a fit ends with the call to paste
my ($out, $err) = ('', '');
$node->psql('postgres', "SELECT ag_fit('small', 'Y', '" . quick_options() . "')", stderr => \$err);
like($err, qr/NOTICE:  stored as "small_y", version 1\nHINT:  (SELECT \*, ag_predict\('small_y', t\) FROM small AS t)\s*$/, 'the last NOTICE gives the call to paste');
$err =~ /HINT:  (SELECT .*)/;
is($node->safe_psql('postgres', "SELECT count(*) FROM ($1) AS s"), '300', 'and it works');
$node->psql('postgres', "SELECT ag_fit('SELECT x, x > 20 AS y, ''a'' || x > ''a20'' AS t, CASE WHEN x > 3 THEN ''b'' ELSE ''c'' END AS word FROM small', 'word', '"
	  . quick_options('"name": "of_query"') . "')", stderr => \$err);
$err =~ /HINT:  (SELECT \*, ag_predict_class.*)/ or diag($err);
is($node->safe_psql('postgres', "SELECT count(*) FROM ($1) AS s"), '300', 'for a query with a column named like the alias too');
$node->psql('postgres', "SELECT ag_fit('small', 'y', '{\"verbosity\": 0}')", stderr => \$err);
is($err, '', 'verbosity 0 is silent');
$node->psql('postgres', "SELECT ag_fit('small', 'y', '{\"verbosity\": 3, \"hyperparameters\": {\"GBM\": {}}}')", stderr => \$err);
like($err, qr/NOTICE:  The trainer got 300 rows, \d+\.\d MB in \d+\.\d\d s \(\d+ rows/, 'verbosity 3 tells rows, bytes and rate');
like($err, qr/NOTICE:  time limit: 300 s, the default/, 'the default time limit is told');

# a long phase speaks up
my $fit = start_fit($node, slow_fit());
my ($supervisor, $trainer) = wait_for_training($node);

# while it trains: barriers, checkpoints, other databases
my $began = time;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('postgres', 'DROP DATABASE other');
cmp_ok(time - $began, '<', 5, 'another database comes and goes during a fit');
$began = time;
$node->safe_psql('postgres', 'CHECKPOINT');
cmp_ok(time - $began, '<', 5, 'a checkpoint during a fit');
my $fast = eval { $node->safe_psql('postgres', 'VACUUM (FULL) small'); 1 };
ok($fast, 'other tables can be vacuumed');
ok(wait_until(15, sub { $fit->{run}->pump_nb; $fit->{err} =~ /fitting GBM.*: \d+ % after \d+ s/ }), 'a long phase reports a percentage within 10 s or so');

# fast
$began = time;
$node->stop('fast');
cmp_ok(time - $began, '<', 3, 'a fast stop during a fit is fast');
end_fit($fit);
like($fit->{err}, qr/57P01/, 'the session hears of the shutdown');
ok(wait_until(1.5, sub { is_gone($supervisor) && is_gone($trainer) }), 'fast stop: nothing lives on');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', 'fast stop: no half predictor');

# immediate
$fit = start_fit($node, slow_fit());
($supervisor, $trainer) = wait_for_training($node);
$began = time;
$node->stop('immediate');
cmp_ok(time - $began, '<', 3, 'an immediate stop during a fit is fast');
end_fit($fit);
ok(wait_until(1.5, sub { is_gone($supervisor) && is_gone($trainer) }), 'immediate stop: nothing lives on');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', 'immediate stop: no half predictor');
like($node->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options('"name": "big_y"') . "')"), qr/big_y/, 'and its name is free');

# the postmaster killed
$fit = start_fit($node, slow_fit());
($supervisor, $trainer) = wait_for_training($node);
$node->kill9;
end_fit($fit);
ok(wait_until(3, sub { is_gone($supervisor) && is_gone($trainer) }), 'kill -9 of the postmaster: nothing lives on');
done_testing();
