package bot

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// commands answers questions, the same on every chat network.
type commands struct {
	gateway   Gateway
	operators []string
	links     links
	log       *slog.Logger
}

// command is one command of the bot.
type command struct {
	name, arguments, help string
	changes               bool // only operators may use it
	run                   func(c *commands, ctx context.Context, words []word) Message
	// story replaces run in a command about one story, which its first words name; follow is the least and the most words
	// after those.
	story  func(c *commands, ctx context.Context, call storyCall) Message
	follow [2]int
}

// list returns all commands. It is a function because help refers to it.
func list() []command {
	return []command{
		{name: "help", help: "this list", run: (*commands).help},
		{name: "status", help: "what needs attention", run: (*commands).status},
		{name: "projects", help: "every project and its stages", run: (*commands).projects},
		{name: "agents", help: "the live agents", run: (*commands).agents},
		{name: "events", help: "the latest events", run: (*commands).events},
		{name: "story", arguments: "[PROJECT] ID", help: "what is known about a story", story: (*commands).story},
		{name: "ack", arguments: "[PROJECT] ID [4h]", help: "acknowledge a story's alert, for a time or until it changes", changes: true, story: (*commands).acknowledge, follow: [2]int{0, 1}},
		{name: "move", arguments: "[PROJECT] ID STAGE", help: "move a story to another stage", changes: true, story: (*commands).move, follow: [2]int{1, maxWords}},
		{name: "unblock", arguments: "[PROJECT] ID", help: "unblock a story", changes: true, story: (*commands).unblock},
		{name: "switch", arguments: "NAME", help: "make a project the active one", changes: true, run: (*commands).switchTo},
		{name: "assign", arguments: "AGENT NAME|none", help: "assign an agent to a project, or to none", changes: true, run: (*commands).assign},
	}
}

// usage returns how the command is written.
func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.arguments) }

// isCommand reports whether a word is the name of a command.
func isCommand(word string) bool {
	return slices.ContainsFunc(list(), func(c command) bool { return strings.EqualFold(c.name, strings.TrimPrefix(word, "!")) })
}

// answer parses and runs a command. Any other text is answered only if it was addressed to the bot.
func (c *commands) answer(ctx context.Context, q Question) (Message, bool) {
	text, called := strings.CutPrefix(strings.TrimSpace(q.Text), "!")
	addressed := q.Addressed || called
	words := split(text)
	if len(words) == 0 {
		return c.help(ctx, nil), q.Addressed
	}
	name, all := strings.ToLower(words[0].text), list()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return Message{{Plain("Unknown command "), Code(short(words[0].text, maxName)), Plain(". Say "), Code("help"), Plain(" for a list.")}}, addressed
	}
	command, words := all[i], words[1:]
	if !addressed && (command.arguments == "") != (len(words) == 0) {
		return nil, false // people talking: "status of the release?"
	}
	run := command.run
	if command.story != nil {
		target := c.target(ctx, command, words)
		if !addressed && !target.named() {
			return nil, false // "move on, please"
		}
		run = func(c *commands, ctx context.Context, _ []word) Message {
			return c.onStory(ctx, command, target)
		}
	}
	if command.changes {
		if !slices.Contains(c.operators, q.Sender) {
			c.log.InfoContext(ctx, "bot: command refused", "command", name, "sender", q.Sender)
			return operatorsOnly(name, q.Sender), true
		}
		c.log.InfoContext(ctx, "bot: command", "command", name, "sender", q.Sender)
		ctx = domain.WithActor(ctx, &domain.Actor{
			Who: short(q.Sender, maxName), Via: domain.ViaBot, Role: domain.RoleOperator, RequestID: domain.ActorOf(ctx).RequestID,
		})
	}
	return run(c, ctx, words).clip(), true
}

func operatorsOnly(command, sender string) Message {
	return Message{{
		Plain("Sorry, only operators may use "), Code(command), Plain(". An administrator can add your user id, "),
		Code(sender), Plain(", to "), Code("bot.operators"), Plain("."),
	}}
}

func (c *commands) help(context.Context, []word) Message {
	m := Message{{Plain("I post the projects' events, and understand these commands:")}}
	for _, command := range list() {
		line := Line{Code(command.usage()), Plain(" – " + command.help)}
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

// failed says why a command failed. The cause of an internal error is only logged.
func (c *commands) failed(ctx context.Context, err error) Message {
	if ctx.Err() != nil { // Slack does not wait for long
		return Message{{Plain("Failed: it took too long. Try again in a moment.")}}
	}
	if domain.CodeOf(err) == domain.Internal {
		c.log.ErrorContext(ctx, "bot: command failed", "error", err)
	}
	return Message{{Plain("Failed: " + short(domain.MessageOf(err), maxReason))}}
}
