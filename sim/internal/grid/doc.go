// Package grid is the experiment that decides lull's defaults: the zero Policy
// against every preset, in every outage of a grid, and in peace time.
//
// # The world
//
// It is the one in which policies differ most: a service that does not know when
// its callers have gone. 100 workers take 100 ms each (exponential), which makes
// 1,000 requests/s; up to 10,000 wait in line, first in, first out; callers give
// an attempt a second. If the line has once grown longer than that second, all
// work is for callers who have gone, and each of their retries is more of it.
// Such a service may stay down long after what brought it down is over.
//
// # The grid
//
//	load       0.2, 0.5, 0.8, 0.9, 0.95 of what the service can do
//	outage     the workers stand still; a tenth of them is left; 2,500 calls/s
//	           arrive; all attempts fail within 5 ms
//	length     0.2, 0.5, 1, 2, 5, 10, 30 s, beginning after a minute;
//	           and 0.8, 1.2 and 1.5 s, about as long as an attempt may take
//	processes  1, 100, 1,000, 10,000, 100,000, which share the load among them
//
// That is 1,000 cells. Beside them there is peace time: ten minutes in which 0.1, 1, 5
// or 10 % of all attempts fail within 5 ms.
//
// # What is demanded
//
// Of the zero Policy, in each cell: it recovers, and stays so for ten minutes; it
// recovers in time (Cell.Limit); and over any minute
//
//	attempts ≤ (1 + ratio) × calls + stock × processes = 1.1 × calls + 2 × processes
//
// In peace time at least 99.9 % of the calls succeed at 1 % errors, in fleets of up
// to 10,000.
//
// And no preset dominates it: there is no cell in which a preset is back sooner and
// at the same load, with the same fleet, also lets more calls succeed in peace
// time, at any of the four shares of errors. One can always be quicker by not
// retrying at all, and more successful by retrying without bounds.
//
// A concurrency limit is a number about the server that a zero Policy cannot know.
// The one preset that brings one (dotnet-standard, 1,000 calls) is met with the zero
// Policy and the same limit. With a single process the limit is as much as this server can
// answer within a time-out, so that its line never grows too long: without a limit the zero
// Policy takes 3 to 5 s longer there after spikes of 1 to 5 s.
//
// # Resolution
//
// A service has recovered when of the calls of five seconds 95 % of the normal share
// succeed; those five seconds begin at a full second. So two times that are no more
// than two seconds apart are held to be equal (Tie), and so are two shares of
// successes that differ by no more than the 95 % interval of their difference, or by
// no more than a hundredth of a point. What looks like a violation with one seed is
// flown again with five, to the end, before it is called one.
//
// # Running it
//
//	go test ./sim/internal/grid                      a part of the grid, some 20 s
//	go test ./sim/internal/grid -timeout 0 -v -args -whole
//	go run ./sim/internal/grid/tables NAME           the tables of docs/defaults.md
package grid
