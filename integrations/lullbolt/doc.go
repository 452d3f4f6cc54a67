// Package lullbolt keeps the keys of package idempotency in a file, with go.etcd.io/bbolt. It is
// the store for a service that is one process on one machine.
//
//	store, err := lullbolt.Open(path, lullbolt.Config{}) // such as /var/lib/payments/keys.bolt
//	...
//	keys, err := idempotency.New(store, idempotency.Config{})
//
// idempotency.Memory forgets its keys when the process ends, although the next process needs them. A
// file needs no server and no network, and exists when the machine starts.
//
// One process at a time has the file, and holds a lock on it (flock, or LockFileEx on Windows).
// Another that opens it waits for Config.Wait, a second by default, and then gets an error that
// is ErrInUse and names the file. The operating system releases the lock when the process ends.
//
//   - If a new process is started before the old one has ended (a rolling restart on one
//     machine), make Wait as long as that takes.
//   - Several processes that serve at once need another store: package lullredis or
//     lullpostgres.
//   - Do not use a network file system: locks and mmap work differently there.
//
// By default a call returns when its change is on the disk (two fdatasync for each transaction):
//
//	the process is killed, at any moment      nothing is lost
//	the machine loses power                   nothing is lost, if the disk keeps what it has synced
//	the file or the disk is lost              everything; a handler may run again
//	Config.NoSync, and power is lost          anything, the file's structure included
//
// Open reads the whole file and compares checksums (Config.Check), before bbolt maps it. A damaged
// file is refused with ErrDamaged, with advice, and is not changed. A backup that is restored has
// the keys of its time: later requests can be carried out again.
//
// The store reads the wall clock when the file is opened, and a monotonic clock from then on. When
// the wall clock is corrected, no lease ends early. Between two openings the wall clock should be
// about right.
//
// Calls that wait share one transaction: a goroutine commits together the calls that came while
// the last commit was under way. If a call's context ends while the call waits, the call is removed
// and changes nothing. If the context ends during the commit, the outcome is unknown.
//
// The file does not get smaller. Config.MaxBytes is its limit, 8 GiB by default. Beyond it new
// keys are refused with idempotency.ErrFull, and none is forgotten before its time. An entry takes
// 70 bytes, its key, its record, and bbolt's overhead. [Store.Sweep] deletes expired entries;
// transactions that make entries do so too.
//
// The store is no idempotency.Transactor: bbolt has one writer at a time, and a transaction that
// stays open while a handler runs would block all others. It does not encrypt: the file contains
// responses, and only its owner can read it.
//
// docs/guide.md has the rest, under "Once and no more": damaged files, time, the size of the file,
// and measurements.
package lullbolt
