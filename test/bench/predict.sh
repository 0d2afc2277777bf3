#!/bin/sh
# predict.sh [ROWS] - what predictions in SQL cost: many rows, point look-ups, the first one after connect, memory of a session; and
# XGBoost's and LightGBM's predict from memory beside it. Run by test/with_cluster (make bench-predict). BENCH_PYTHON: a Python with numpy,
# xgboost and lightgbm, else those lines stay away. BENCH_PART: one of rows, connect, lookup, memory, else all of them.
#
# Times are CPU time (user and system) of the one process that works, as getrusage has it: the median of five runs.
set -eu
rows=${1:-200000}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
wants() { [ -z "${BENCH_PART:-}" ] || [ "$BENCH_PART" = "$1" ]; }
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
# CPU seconds of the last statement of a session, five sessions' median; statements before it only prepare
seconds() { # STATEMENT...
	for run in 1 2 3 4 5; do
		n=$#
		{
			echo "SET max_parallel_workers_per_gather = 0; SET jit = off;"
			for statement; do
				n=$((n - 1))
				[ $n -gt 0 ] || echo "SET client_min_messages = log; SET log_statement_stats = on;"
				echo "$statement;"
			done
		} >"$dir/run.sql"
		q -f "$dir/run.sql" 2>&1 >/dev/null | sed -n 's/^!.*[^0-9.]\([0-9.]*\) s user, \([0-9.]*\) s system, [0-9.]* s elapsed.*/\1 \2/p' |
			awk '{s = $1 + $2} END {print s}' # the last statement's
	done | median
}
seconds_once() { # STATEMENT, in one session
	printf 'SET client_min_messages = log; SET log_statement_stats = on;\n%s;\n' "$1" >"$dir/run.sql"
	q -f "$dir/run.sql" 2>&1 >/dev/null | sed -n 's/^!.*[^0-9.]\([0-9.]*\) s user, \([0-9.]*\) s system, [0-9.]* s elapsed.*/\1 \2/p' | awk '{s = $1 + $2} END {print s}'
}
per_row() { # NAME STATEMENT...
	name=$1
	shift
	s=$(seconds "$@")
	awk -v s="$s" -v n="$rows" -v name="$name" 'BEGIN {printf "%-58s %8.3f us a row\n", name, s * 1e6 / n}'
}

columns=$(seq -s ', ' -f 'c%.0f' 1 28)
q -c 'CREATE EXTENSION ag_pg' -c 'SELECT setseed(0.5)' -c "
CREATE TABLE t AS
SELECT id, $columns, c1 * c2 + sin(c3) + CASE WHEN c4 > 0.5 THEN c5 ELSE c6 * c7 END + c8 * 0.5 + 0.3 * random() AS y
FROM (SELECT id, $(seq -s ', ' -f 'random() * 2 - 1 AS c%.0f' 1 28) FROM generate_series(1, $rows) id) s" \
	-c 'ALTER TABLE t ADD PRIMARY KEY (id)' -c 'VACUUM (FREEZE, ANALYZE) t' >/dev/null
q -c "SELECT ag_fit('SELECT $columns, y FROM t WHERE id <= 20000', 'y', '{\"name\": \"m\", \"verbosity\": 0,
	\"hyperparameters\": {\"GBM\": {\"num_boost_round\": 100, \"max_depth\": 6, \"num_leaves\": 64, \"learning_rate\": 0.05}}}')" >/dev/null
q -c "CREATE VIEW features AS SELECT $columns FROM t"

if wants rows; then
	per_row "SELECT avg(c1) FROM t" "SELECT avg(c1) FROM t"
	per_row "SELECT avg(c1 + ... + c28) FROM t" "SELECT avg($(seq -s ' + ' -f 'c%.0f' 1 28)) FROM t"
	per_row "SELECT avg(ag_predict('m', t)) FROM t" "SELECT ag_prewarm('m')" "SELECT avg(ag_predict('m', t)) FROM t"
	per_row "SELECT avg(value) FROM ag_predict_table('m', 't')" "SELECT ag_prewarm('m')" \
		"SELECT avg(value) FROM ag_predict_table('m', 't')"
	per_row "SELECT count(prediction) FROM ag_predict_table('m', 't')" "SELECT ag_prewarm('m')" \
		"SELECT count(prediction) FROM ag_predict_table('m', 't')"
	if [ -n "${BENCH_PYTHON:-}" ]; then
		q -c "COPY (SELECT $columns, y FROM t) TO STDOUT CSV" >"$dir/rows.csv"
		"$BENCH_PYTHON" "$here/predict_peers.py" "$dir/rows.csv"
	fi
fi
share() { # SIZE: how much models of all sessions together; before 17 that takes the preloaded library of make bench-predict
	q -c "ALTER SYSTEM SET ag_pg.shared_model_cache_size = '$1'" -c "SELECT pg_reload_conf()" >/dev/null
	sleep 1
}
model_mb() { # NAME
	q -c "SELECT round(sum(octet_length(data)) / 1e6, 1) FROM ag_member_part WHERE predictor = (SELECT id FROM ag_predictor WHERE name = '$1')
		AND member IN (SELECT ordinal FROM ag_member WHERE predictor = (SELECT id FROM ag_predictor WHERE name = '$1') AND can_infer)"
}
if wants connect; then
	q -c "SELECT ag_fit('SELECT $columns, y FROM t WHERE id <= 20000', 'y', '{\"name\": \"ten\", \"verbosity\": 0, \"time_limit\": 600, \"ag_args_fit\": {\"early_stop\": null},
		\"hyperparameters\": {\"GBM\": {\"num_boost_round\": 2000, \"num_leaves\": 128, \"learning_rate\": 0.01}}}')" >/dev/null
	warm="SELECT * FROM t WHERE id = 7"
	show() { awk -v s="$2" -v name="$1" 'BEGIN {printf "%-66s %8.3f ms\n", name, s * 1e3}'; }
	show "point look-up without a model, first after connect" "$(seconds "$warm")"
	for model in m ten; do
		one="SELECT ag_predict('$model', t) FROM t WHERE id = 7"
		what="$(model_mb $model) MB"
		share 0
		show "ag_predict, first after connect, $what, nothing shared" "$(seconds "$warm" "$one")"
		show "... first after ag_prewarm in the session" "$(seconds "$warm" "SELECT ag_prewarm('$model')" "$one")"
		show "... second" "$(seconds "$warm" "$one" "$one")"
		share 256MB
		show "the session that shares it, $what: ag_prewarm" "$(seconds_once "SELECT ag_prewarm('$model')")"
		show "ag_predict, first after connect, shared" "$(seconds "$warm" "$one")"
	done
fi
if wants lookup; then
	cat >"$dir/plain.sql" <<SQL
\set id random(1, $rows)
SELECT c1 FROM t WHERE id = :id;
SQL
	cat >"$dir/predict.sql" <<SQL
\set id random(1, $rows)
SELECT ag_predict('m', t) FROM t WHERE id = :id;
SQL
	# in turns, for others are at work on the machine
	for clients in 1 8; do
		for turn in 1 2 3 4 5 6 7; do
			for kind in plain predict; do
				pgbench -n -M prepared -c $clients -j $clients -T 2 -f "$dir/$kind.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p' >>"$dir/$kind.$clients"
			done
		done
	done
	# without the protocol: what a look-up takes of the server's time
	loop() { echo "DO \$\$ BEGIN FOR i IN 1..20000 LOOP PERFORM $1 FROM t WHERE id = i; END LOOP; END \$\$"; }
	for what in c1 "c1 + c28" "ag_predict('m', t)"; do
		s=$(seconds "$(loop "$what")")
		awk -v s="$s" -v what="$what" 'BEGIN {printf "%-58s %8.3f us\n", "look-up of " what ", in a loop", s * 1e6 / 20000}'
	done
	for clients in 1 8; do
		plain=$(median <"$dir/plain.$clients") predict=$(median <"$dir/predict.$clients")
		awk -v a="$plain" -v b="$predict" -v n=$clients \
			'BEGIN {printf "pgbench -M prepared -c %d: %.0f tps plain, %.0f with ag_predict: %.1f %%\n", n, a, b, 100 * b / a}'
	done
fi
if wants memory; then
	q -c "SELECT ag_fit('SELECT $columns, y FROM t WHERE id <= 20000', 'y', '{\"name\": \"big\", \"verbosity\": 0, \"time_limit\": 600,
		\"hyperparameters\": {\"XT\": {\"n_estimators\": 85}}}')" >/dev/null
	# what 100 sessions have of their own, and their parts of what they share: kB
	for size in 0 256MB; do
		share $size
		q -c "SELECT ag_prewarm('big')" >/dev/null
		for kind in c1 "ag_predict('big', t)"; do
			pids=
			for i in $(seq 100); do
				q -c "SELECT $kind FROM t WHERE id = $i" -c "SELECT pg_sleep(3600)" >/dev/null 2>&1 &
				pids="$pids $!"
			done
			while [ "$(q -c "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")" -lt 100 ]; do sleep 1; done
			kb=$(q -c "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'" | while read -r pid; do cat "/proc/$pid/smaps_rollup"; done |
				awk '/^Pss_(Anon|Shmem):/ {kb += $2} END {print kb}')
			[ "$kind" = c1 ] && before=$kb
			q -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'" >/dev/null
			for pid in $pids; do wait "$pid" || :; done
		done
		echo "100 sessions with a model of $(model_mb big) MB, ag_pg.shared_model_cache_size = $size: $(((kb - before) / 1024)) MB more than without it"
	done
fi
