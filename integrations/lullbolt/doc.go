// Package lullbolt keeps the keys of package idempotency in a file, with
// go.etcd.io/bbolt: the store for a service that is one process on one machine.
//
//	store, err := lullbolt.Open("/var/lib/payments/keys.bolt", lullbolt.Config{})
//	...
//	keys, err := idempotency.New(store, idempotency.Config{})
//
// # Why
//
// A service that runs once needs no server to remember its keys, but it must remember
// them: idempotency.Memory forgets when the process ends, which is when it matters. A
// file needs nothing installed, is there when the machine starts, and is as near as its
// disk: there is no network that could hide whether a call has arrived.
//
// # One process
//
// One process at a time has the file, and holds a lock on it for as long as it is open
// (flock, or LockFileEx on Windows). Another that opens it waits for Config.Wait, a
// second by default, and then gets an error that is ErrInUse and names the file; it does
// not hang, and it cannot do harm. The operating system gives the lock up when the
// process ends, however it ends. So:
//
//   - Where a new process is started before the old one has ended (a rolling restart on
//     one machine), make Wait as long as that takes.
//   - Several processes that serve at once need another store: package lullredis or
//     lullpostgres.
//   - Not on a network file system: locks and mmap there are not what they are on a
//     disk.
//
// # What survives what
//
// By default a call returns when its change is on the disk (two fdatasync for each
// transaction). Then
//
//	the process is killed, at any moment      nothing is lost
//	the machine loses power                   nothing is lost, if the disk keeps its word
//	the file or the disk is lost              everything; a handler may run again
//	Config.NoSync, and power is lost          anything, the file's structure included
//
// The tests kill a process (SIGKILL) at each step of the protocol and have another open
// the file: there are never two effects, and none that is denied. Nobody has pulled a
// plug for them; that bbolt's pages survive it is bbolt's design (copy on write, and two
// meta pages with checksums), and etcd's experience.
//
// # A file that is damaged
//
// Each entry carries a checksum of its key and all that it has, and the file the number
// of its entries and the sum of their checksums, written with every transaction. Open
// reads the whole file and compares (Config.Check), before bbolt maps it: bbolt believes
// what it finds, and can end the process over it. What was cut off, changed, exchanged or
// never written is refused with ErrDamaged, which says how to go on. Such a file is not
// changed. In the tests hundreds of damages, in processes of their own, give an error or
// the right answer. Two states cannot be told from a good file: an older copy of the
// whole of it, and the one before the last transaction if the disk has lost all of that.
//
// What happens to the file after Open is noticed as it is read: by the checksum of the
// entry, or as a fault in mapped memory, after which the store refuses all calls. The
// process goes on.
//
// A backup that is restored has the keys of its time. Requests that came later can be
// run again.
//
// # Time
//
// The clock is that of the wall when the file is opened, and from then on one that
// nobody sets: when the wall's is corrected, no lease ends early. Between two openings
// the wall's clock should be about right. If it had been years slow, the keys of that
// time would be forgotten at the next opening; if fast, they would be kept for longer.
// Times are to the nanosecond, up to the year 2262.
//
// # One transaction for all who wait
//
// A commit costs two syncs of the disk, however much is in it. So calls queue, and one
// goroutine, which ends when the queue is empty, commits together what came while the
// last commit was under way: nobody waits for a timer, as in bbolt's Batch, and nobody
// alone for the disk, as in Update. Claims by 16 workers, and the time that one takes
// alone (go test -bench Commit, on a virtual machine with two cores): while a sync of
// its disk took about 0.1 ms, and while others kept the disk busy and it took ten times
// as long, median of seven rounds.
//
//	                     quiet disk              busy disk
//	                     16 workers    alone     16 workers    alone
//	this queue             13,000/s   0.3 ms        3,000/s     2 ms
//	bbolt Update            3,600/s   0.3 ms          400/s     2 ms
//	bbolt Batch, 1 ms       6,600/s   1.7 ms        2,700/s     3 ms
//	bbolt Batch, 10 ms      1,400/s    12 ms        1,100/s    14 ms     (bbolt's default)
//
// A call whose context ends while it is in the queue is taken out of it, and changes
// nothing; if it ends during the commit, it is not known whether it does.
//
// # Cost
//
// On the same machine (go test -bench Store), quiet disk, 16 workers, records of 2 KiB:
//
//	                     synced     NoSync
//	claim              13,000/s   34,000/s
//	claim, complete     4,200/s   13,000/s      requests
//	replay                  2 µs                on one core
//
// Claims that are refused (replay, in flight, mismatch, unknown) are read, and wait for
// nobody. An entry takes 70 bytes, its key, its record, and bbolt's overhead.
//
// # How large the file gets
//
// An entry past its time does not exist any more, but takes room until it is deleted.
// Each transaction that makes entries looks at a few others, in the order of their keys
// and over and over: four for each that it makes, 16 at least, 2048 at most. So entries
// past their time are at most a third as many as the others, in the long run, and no
// transaction takes long. Where the sweep has come to is in the file too, for processes
// that do not live for one round. [Store.Sweep] does a whole round.
//
// bbolt uses again what has become free, and never makes a file smaller: it stays as
// large as it was at most. (To shrink it: "bbolt compact", while no process has it.)
// Config.MaxBytes is the limit, 8 GiB by default; beyond it new keys are refused with
// idempotency.ErrFull, and none is forgotten before its time.
//
// The list of free pages is not kept in the file. It would be written with each commit,
// so that after a gigabyte was forgotten a commit would take 3.6 ms, where it takes
// 0.2. Instead Open reads the pages: 0.11 s for a full file of 500 MiB in the system's
// cache; with Config.Check 0.25 s.
//
// # What it does not do
//
// It is no idempotency.Transactor: bbolt has one writer at a time, and a transaction
// that stays open while a handler runs would make all others wait.
//
// It does not encrypt: the file has responses in it, and is readable by its owner only.
package lullbolt
