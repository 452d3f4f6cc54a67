// Command lull is under construction.
package main

func main() {}
