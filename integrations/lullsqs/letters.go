package lullsqs

import "github.com/lullgo/lull/queue"

// Letters is Queue.Letters for a queue of dead letters of which only the URL is known. It is for
// tools.
func Letters(client Client, url string, c queue.ScanConfig) (queue.DeadLetters, error) {
	q, err := New(client, Config{Queue: url})
	if err != nil {
		return nil, err
	}
	q.reading = true
	return queue.Scan(q, c)
}
