//go:build race

package sim_test

// The race detector makes a simulation ten times slower and finds nothing new in
// the thousandth trial.
const raced = true
