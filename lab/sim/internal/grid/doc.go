// Package grid has the world in which lull's first defaults were chosen, for the tables of
// lab/battery/TABLES.md. Package lab/battery has the demands on the zero Policy in this
// world and in others. There the grid is one family.
//
// # The world
//
// It is the one in which policies differ most: a service that does not know when
// its callers have gone. 100 workers take 100 ms each (exponential), which makes
// 1,000 requests/s. Up to 10,000 wait in a queue, first in, first out. Callers give
// up an attempt after a second. Once the queue is longer than that second, all
// work is for callers who have gone, and each of their retries adds to it.
// Such a service may stay down long after the cause of the outage is over.
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
// That is 1,000 cells. There is also peace: ten minutes in which 0.1, 1, 5
// or 10 % of all attempts fail within 5 ms.
//
// # Running it
//
//	go test ./lab/battery                        a part of the grid
//	go run ./cmd/lull battery --family grid --whole   all of it
//	go run ./lab/sim/internal/grid/tables NAME            the tables of lab/battery/TABLES.md
package grid
