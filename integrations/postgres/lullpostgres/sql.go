package lullpostgres

import "strings"

type statements struct {
	claim, claimInTx           string // with a shared lock; with an exclusive one
	extend, complete, release  string
	completeInTx, sweep, check string
}

// claimAgain is a value of the first column of the claim's row, beside the KeyStates. It asks for
// another claim, with a new snapshot and with the time of the server's clock.
const claimAgain = 0

// All statements need the time, and whether another transaction is at work on the key. The server
// evaluates clock_timestamp() at each use: hence a table with one row. %LOCK% is evaluated only if
// something will be written.

// claimSQL reads first, and writes only if the row that it reads allows that: a refusal takes no
// lock, no transaction number, and writes no log. The reading uses the statement's snapshot; the
// unique index decides. If the two differ, because another transaction came in between, the answer
// is "again", and the next snapshot has the new row.
//
// It changes nothing from the caller's deadline on. The clock is read once more under the lock, so
// that whoever has the lock after the deadline, alone, finds all that the claim has made.
//
//	$1 key  $2 fingerprint  $3 token  $4 lease  $5 retention (µs)  $6 resume  $7 lock
//	$8 deadline (µs since 1970), null for none
const claimSQL = `
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
old AS MATERIALIZED (
	SELECT e.fingerprint, e.token, e.lease_end, e.record
	FROM %TABLE% AS e, clock WHERE e.key = $1::text AND e.forget_at > clock.now
),
may AS MATERIALIZED (
	SELECT now, free, free AND NOT COALESCE(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 >= $8::bigint, false) AS timely
	FROM (SELECT now, %LOCK%($7::bigint) AS free FROM clock WHERE NOT EXISTS (
		SELECT FROM old, clock WHERE NOT (old.fingerprint = $2::bytea AND old.record IS NULL
			AND (old.token = $3::bytea OR $6::boolean AND old.lease_end <= clock.now)))) AS locked
),
new AS (
	INSERT INTO %TABLE% AS e (key, fingerprint, token, resumed, lease_end, forget_at)
	SELECT $1::text, $2::bytea, $3::bytea, false,
		now + $4::bigint * interval '1 microsecond', now + $5::bigint * interval '1 microsecond'
	FROM may WHERE timely
	ON CONFLICT (key) DO UPDATE SET
		fingerprint = excluded.fingerprint, token = excluded.token, record = NULL,
		resumed = e.forget_at > (SELECT now FROM clock) AND (e.resumed OR e.token <> excluded.token),
		lease_end = excluded.lease_end, forget_at = excluded.forget_at
	WHERE e.forget_at <= (SELECT now FROM clock)
		OR e.fingerprint = excluded.fingerprint AND e.record IS NULL
		AND (e.token = excluded.token OR $6::boolean AND e.lease_end <= (SELECT now FROM clock))
	RETURNING e.resumed
)
SELECT a.state::bigint,
	COALESCE(a.resumed, false),
	CASE a.state WHEN 2 THEN CASE WHEN a.free IS NULL
		THEN (EXTRACT(EPOCH FROM a.lease_end - a.now) * 1000000)::bigint ELSE 0 END ELSE 0 END,
	CASE a.state WHEN 3 THEN a.record END,
	(EXTRACT(EPOCH FROM a.now) * 1000000)::bigint
FROM (
	SELECT CASE
			WHEN new.resumed IS NOT NULL THEN 1                       -- claimed
			WHEN may.free THEN 0                                      -- again: too late, or changed by others
			WHEN NOT may.free THEN 2                                  -- in flight, in a transaction
			WHEN old.fingerprint <> $2::bytea THEN 4                  -- mismatch
			WHEN old.record IS NOT NULL THEN 3                        -- replay
			WHEN old.lease_end > clock.now THEN 2                     -- in flight
			ELSE 5                                                    -- unknown
		END AS state, new.resumed, may.free, old.lease_end, clock.now, old.record
	FROM clock LEFT JOIN old ON true LEFT JOIN may ON true LEFT JOIN new ON true
) AS a`

// The owner's calls return two booleans: whether no transaction is at work on the key, and whether
// the entry was the token's. A release takes the lock alone, so that no claim is being committed
// meanwhile.
//
//	$1 key  $2 token  $3 lock  and then the statement's own
const ownSQL = `
WITH c AS MATERIALIZED (SELECT clock_timestamp() AS now, %LOCK%($3::bigint) AS free),
own AS (
	%WHAT%
	c.free AND e.key = $1::text AND e.token = $2::bytea AND e.forget_at > c.now
	RETURNING 1
)
SELECT c.free, EXISTS (SELECT FROM own) FROM c`

const (
	// $4 lease  $5 retention
	extendSQL = `UPDATE %TABLE% AS e SET
		lease_end = c.now + $4::bigint * interval '1 microsecond',
		forget_at = c.now + $5::bigint * interval '1 microsecond'
	FROM c WHERE e.record IS NULL AND`
	// $4 record  $5 retention. A completed entry is written again unchanged, so that two calls that
	// complete it at once, with one token, both find it.
	completeSQL = `UPDATE %TABLE% AS e SET
		record = COALESCE(e.record, $4::bytea),
		forget_at = CASE WHEN e.record IS NULL THEN c.now + $5::bigint * interval '1 microsecond' ELSE e.forget_at END
	FROM c WHERE`
	releaseSQL = `DELETE FROM %TABLE% AS e USING c WHERE e.record IS NULL AND`

	// No other transaction can have changed the entry that this one has claimed.
	completeInTxSQL = `UPDATE %TABLE% SET
	record = $3::bytea, forget_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE key = $1::text AND token = $2::bytea AND record IS NULL RETURNING true`

	// It uses statement_timestamp, because an index cannot be searched for a changing value. Rows
	// that others have locked are about to be renewed, or deleted. It selects by ctid, so that a
	// batch costs the same however many rows there are. A row that has moved is left for the next
	// batch.
	sweepSQL = `WITH gone AS (DELETE FROM %TABLE% WHERE forget_at <= statement_timestamp() AND ctid = ANY (ARRAY(
	SELECT ctid FROM %TABLE% WHERE forget_at <= statement_timestamp()
	ORDER BY forget_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED)) RETURNING 1)
SELECT count(*) FROM gone`

	checkSQL = `SELECT key, fingerprint, token, resumed, lease_end, forget_at, record FROM %TABLE% LIMIT 0`
)

func statementsFor(table string) statements {
	fill := func(q string, more ...string) string {
		return strings.NewReplacer(append(more, "%TABLE%", table)...).Replace(q)
	}
	const exclusiveLock, sharedLock = "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared"
	own := func(what, lock string) string {
		return fill(strings.Replace(ownSQL, "%WHAT%", what, 1), "%LOCK%", lock)
	}
	return statements{
		claim:        fill(claimSQL, "%LOCK%", sharedLock),
		claimInTx:    fill(claimSQL, "%LOCK%", exclusiveLock),
		extend:       own(extendSQL, sharedLock),
		complete:     own(completeSQL, sharedLock),
		release:      own(releaseSQL, exclusiveLock),
		completeInTx: fill(completeInTxSQL),
		sweep:        fill(sweepSQL),
		check:        fill(checkSQL),
	}
}
