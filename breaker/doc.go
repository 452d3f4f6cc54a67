// Package breaker is written below.
package breaker
