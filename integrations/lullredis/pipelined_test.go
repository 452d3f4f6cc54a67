package lullredis

import (
	"strings"
)

// Scripts that write, and then return or raise what a server refuses commands with.
var scripts4test = map[string]string{
	"$returns": `redis.call('incr', KEYS[1]) return redis.error_reply('BUSY somebody has it')`,
	"$raises":  `redis.call('incr', KEYS[1]) error({err='LOADING the rest failed'})`,
	"$writes":  `return redis.call('incr', KEYS[1])`,
}

// words returns the commands of a text, separated by semicolons.
func words(text string) (cmds [][]any) {
	for _, line := range strings.Split(text, ";") {
		var args []any
		for _, word := range strings.Fields(line) {
			if script, ok := scripts4test[word]; ok {
				word = script
			}
			args = append(args, word)
		}
		cmds = append(cmds, args)
	}
	return cmds
}
