# What is dropped while a session's fit runs (jobs.pl has jobs): the extension, the role, or the database. Nobody hangs, the fit says why it ended or is
# stored whole, and nothing of it is left.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('drop');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\n");
$node->start;
make_data($node);
my $boot = boot_time($node);
my ($fit, @pids, $began);

# the extension: it needn't wait, as the fit holds no lock on its tables
my $drop_during = sub {
	my ($sql, $name, $limit) = @_;
	$fit = start_fit($node, slow_fit() =~ s/"time_limit": 300/"time_limit": $limit/r);
	@pids = wait_for_training($node);
	$began = time;
	$node->safe_psql('postgres', $sql);
	cmp_ok(time - $began, '<', 1.5, "$name during a fit: at once");
	end_fit($fit);
	nothing_left($node, $name, @pids);
};
$drop_during->('DROP EXTENSION ag_pg CASCADE', 'DROP EXTENSION', 1.5);
like($fit->{err}, qr/ERROR:  42704: extension "ag_pg" is not installed in this database/, 'the fit says that there is nowhere to store it');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'ag\_%'}), '0', 'and leaves nothing');
$node->safe_psql('postgres', 'CREATE EXTENSION ag_pg');

$drop_during->('DROP EXTENSION ag_pg CASCADE; CREATE SCHEMA s; CREATE EXTENSION ag_pg SCHEMA s', 'DROP and CREATE EXTENSION', 4); # it must be there again in time
is($fit->{out}, "big_y\n", 'the fit finds the new tables') or diag($fit->{err});
is($node->safe_psql('postgres', q{SELECT count(s.ag_predict('big_y', big)) FROM big}), '20000', 'and its model predicts');
$node->safe_psql('postgres', q{DROP EXTENSION ag_pg CASCADE; CREATE EXTENSION ag_pg});

# the role
$node->safe_psql('postgres', 'CREATE ROLE fitter; GRANT SELECT ON big TO fitter');
my $change_during = sub {
	my ($sql, $name) = @_;
	my $as = slow_fit('"name": "theirs"') =~ s/"time_limit": 300/"time_limit": 1.5/r;
	$fit = start_fit($node, "SET ROLE fitter; $as");
	@pids = wait_for_training($node);
	$node->safe_psql('postgres', $sql);
	end_fit($fit);
	nothing_left($node, $name, @pids);
};
$change_during->('ALTER ROLE fitter RENAME TO fitter2; ALTER ROLE fitter2 RENAME TO fitter3', 'ALTER ROLE');
is($node->safe_psql('postgres', q{SELECT owner FROM ag_models WHERE name = 'theirs'}), 'fitter3', 'a role renamed during its fit owns what it fitted');
$node->safe_psql('postgres', q{SELECT ag_drop('theirs'); ALTER ROLE fitter3 RENAME TO fitter});
$change_during->('DROP OWNED BY fitter; DROP ROLE fitter', 'DROP ROLE');
like($fit->{err}, qr/ERROR:  42704: the role that fits was dropped during the fit/, 'a role dropped during its fit: the fit says so');
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'theirs'}), '0', 'nothing is stored for a role that is gone');

# the database
$fit = start_fit($node, slow_fit());
@pids = wait_for_training($node);
$began = time;
my ($rc, $out, $err) = $node->psql('template1', 'DROP DATABASE postgres');
like($err, qr/database "postgres" is being accessed by other users\nDETAIL:  There is 1 other session/, 'DROP DATABASE: refused, and the supervisor does not count');
cmp_ok(time - $began, '<', 10, 'DROP DATABASE: in time');
ok(!is_gone($pids[1]), 'and the fit goes on');
$began = time;
$node->safe_psql('template1', 'DROP DATABASE postgres WITH (FORCE)');
cmp_ok(time - $began, '<', 2, 'DROP DATABASE WITH (FORCE): at once');
end_fit($fit);
like($fit->{err}, qr/57P01/, 'it ends the fit');
ok(wait_until(3, sub { !(grep { !is_gone($_) } @pids) }), 'and its processes');
is($node->safe_psql('template1', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'}), $boot, 'the server never restarted');

$node->stop;
done_testing();
