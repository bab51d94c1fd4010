// Package yard holds the nouns of Switchyard (projects, agents, tokens, events, pipelines, the bot's
// configuration, errors) and the rules that a value of each must satisfy by itself.
//
// It is a leaf: it knows the standard library and nothing of SQL, HTTP or TOML.
package yard

import "time"

// Millis returns t as Unix milliseconds, the unit of every timestamp in the API.
func Millis(t time.Time) int64 { return t.UnixMilli() }
