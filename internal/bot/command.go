package bot

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// commands answers what people ask, the same on every chat network.
type commands struct {
	gateway   Gateway
	operators []string
	links     links
	log       *slog.Logger
}

// command is one thing that the bot understands.
type command struct {
	name, arguments, help string
	changes               bool // only operators may use it
	run                   func(c *commands, ctx context.Context, words []word) Message
}

// list is a function because help refers to it.
func list() []command {
	return []command{
		{"help", "", "this list", false, (*commands).help},
		{"status", "", "what needs attention", false, (*commands).status},
		{"projects", "", "every project and its stages", false, (*commands).projects},
		{"agents", "", "the agents that are alive", false, (*commands).agents},
		{"events", "", "the latest events", false, (*commands).events},
		{"switch", "NAME", "make a project the active one", true, (*commands).switchTo},
		{"assign", "AGENT NAME|none", "send an agent to a project, or to none", true, (*commands).assign},
	}
}

// isCommand reports whether a word is the name of a command.
func isCommand(word string) bool {
	return slices.ContainsFunc(list(), func(c command) bool { return strings.EqualFold(c.name, strings.TrimPrefix(word, "!")) })
}

// answer parses and runs a command. Any other text is answered only if it was sent to the bot.
func (c *commands) answer(ctx context.Context, q Question) (Message, bool) {
	text, called := strings.CutPrefix(strings.TrimSpace(q.Text), "!")
	addressed := q.Addressed || called
	words := split(text)
	if len(words) == 0 {
		return c.help(ctx, nil), q.Addressed
	}
	name := strings.ToLower(words[0].text)
	commands := list()
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	switch {
	case i < 0:
		return Message{{Plain("Unknown command "), Code(short(words[0].text, maxName)), Plain(". Say "), Code("help"), Plain(" for a list.")}}, addressed
	case !addressed && (commands[i].arguments == "") != (len(words) == 1):
		return nil, false // people talking: "status of the release?"
	case commands[i].changes && !slices.Contains(c.operators, q.Sender):
		c.log.InfoContext(ctx, "bot: command refused", "command", name, "sender", q.Sender)
		return Message{{
			Plain("Sorry, only operators may use "), Code(name), Plain(". An administrator can add your user id, "),
			Code(q.Sender), Plain(", to "), Code("bot.operators"), Plain("."),
		}}, true
	case commands[i].changes:
		c.log.InfoContext(ctx, "bot: command", "command", name, "sender", q.Sender)
	}
	return commands[i].run(c, ctx, words[1:]).clip(), true
}

func (c *commands) help(context.Context, []word) Message {
	m := Message{{Plain("I post what happens in the projects, and understand:")}}
	for _, command := range list() {
		usage := strings.TrimSpace(command.name + " " + command.arguments)
		line := Line{Code(usage), Plain(" – " + command.help)}
		if command.changes {
			line = append(line, Plain(" (operators)"))
		}
		m = append(m, line)
	}
	return m
}

func usage(text string) Message {
	return Message{{Plain("Usage: "), Code(text)}}
}

// failed says why a command failed. The cause of an internal error goes to the log only.
func (c *commands) failed(ctx context.Context, err error) Message {
	if domain.CodeOf(err) == domain.Internal {
		c.log.ErrorContext(ctx, "bot: command failed", "error", err)
	}
	return Message{{Plain("Failed: " + short(domain.MessageOf(err), maxReason))}}
}
