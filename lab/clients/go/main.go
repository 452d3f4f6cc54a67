// Command go is the adapter of lull torture for clients in Go. Its argument is the name of the
// client.
package main

import "github.com/lullgo/lull/lab/clients/internal/adapter"

func main() { adapter.Main(clients) }
