//go:build !race

package admission

const raced = false
