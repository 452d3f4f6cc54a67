// Package consumers decides what a consumer of a queue does beside its calls: how many messages it
// handles at the same time (Crowd), when it extends its hold on a message (Lease), and which probes
// are no attempts (ProbeCounter). Like package engine, which decides about each message, it reads no
// clock and does no I/O.
package consumers
