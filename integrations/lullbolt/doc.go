// Package lullbolt keeps the keys of package idempotency in a file, with go.etcd.io/bbolt. It is
// the store for a service that is one process on one machine: it needs no server and no network.
//
//	store, err := lullbolt.Open(path, lullbolt.Config{}) // such as /var/lib/payments/keys.bolt
//	...
//	keys, err := idempotency.New(store, idempotency.Config{})
//
// One process at a time has the file; another gets [ErrInUse]. A call returns when its change is on
// the disk. Open reads the whole file and compares checksums, and refuses a damaged one
// ([ErrDamaged]). An entry takes 70 bytes, its key, its record, and bbolt's overhead. The file does
// not get smaller; Config.MaxBytes is its limit.
//
// docs/servers.md has the rest, under "Stores": what survives, damaged files, the size of the
// file, and a measurement.
package lullbolt
