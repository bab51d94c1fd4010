// Package domain holds the nouns of Switchyard (projects, agents, tokens, events, pipelines, the bot's
// configuration, errors) and the rules that a value of each must satisfy by itself.
//
// It is a leaf: it knows the standard library and nothing of SQL, HTTP or TOML.
package domain
