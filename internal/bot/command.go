package bot

import (
	"context"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// commands answers questions, the same on every chat network.
type commands struct {
	Options
	gateway Gateway
	links   links
}

type command struct {
	name, arguments, help string
	changes               bool // only operators may use it
	run                   func(ctx context.Context, words []word) Message
	// story replaces run in a command about one story, which its first words name; follow is the least and the most
	// words that may come after those.
	story  func(ctx context.Context, ref domain.StoryRef, rest []word) Message
	follow [2]int
	// room replaces run in the command about the room in which it is given.
	room func(ctx context.Context, room string, words []word) Message
	// asked replaces run in the command that answers a question, which its first word names.
	asked func(ctx context.Context, asked domain.Question, text string) Message
}

// list returns all commands. Only a command that is run needs c.
func list(c *commands) []command {
	reading, changing := readCommands{c}, changeCommands{c}
	return []command{
		{name: "help", help: "this list", run: c.help},
		{name: "status", help: "what needs attention", run: reading.status},
		{name: "projects", help: "every project and its stages", run: reading.projects},
		{name: "agents", help: "the live agents", run: reading.agents},
		{name: "events", help: "the latest events", run: reading.events},
		{name: "flow", arguments: "PROJECT", help: "how long its stories take", run: reading.flow},
		{
			name: "forecast", arguments: "PROJECT [ITEMS]", help: "how many will be finished, and when so many will be",
			run: reading.forecast,
		},
		{name: "story", arguments: "[PROJECT] ID", help: "what is known about a story", story: reading.story},
		{
			name: "ack", arguments: "[PROJECT] ID [4h]", help: "acknowledge a story's alert, for a time or until it changes",
			changes: true, story: changing.acknowledge, follow: [2]int{0, 1},
		},
		{
			name: "move", arguments: "[PROJECT] ID STAGE", help: "move a story to another stage",
			changes: true, story: changing.move, follow: [2]int{1, maxWords},
		},
		{name: "unblock", arguments: "[PROJECT] ID", help: "unblock a story", changes: true, story: changing.unblock},
		{
			name: "answer", arguments: "N VALUE [TEXT]", help: "answer question N of an agent",
			changes: true, asked: answerCommands{c}.answerQuestion,
		},
		{
			name: "filter", arguments: "[PROJECTS, KINDS|everything]",
			help: "what this room gets, such as \"alpha, blocked, merge failed\"", changes: true, room: filterCommands{c}.filter,
		},
		{name: "switch", arguments: "NAME", help: "make a project the active one", changes: true, run: changing.switchTo},
		{
			name: "assign", arguments: "AGENT NAME|none", help: "assign an agent to a project, or to none",
			changes: true, run: changing.assign,
		},
	}
}

func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.arguments) }

// find returns the command with a name, ignoring case; false if there is none.
func find(all []command, name string) (command, bool) {
	i := slices.IndexFunc(all, func(c command) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func IsCommand(word string) bool {
	_, ok := find(list(nil), strings.TrimPrefix(word, "!"))
	return ok
}

// answer parses and runs a command. Any other text is answered only if it was addressed to the bot.
func (c *commands) answer(ctx context.Context, q Question) (Message, bool) {
	text, called := strings.CutPrefix(strings.TrimSpace(q.Text), "!")
	addressed := q.Addressed || called
	words := split(text)
	if q.About != "" && !called && !isNumbered(words) {
		if asked, ok := (answerCommands{c}).about(ctx, q.About); ok {
			return answerCommands{c}.answerThread(ctx, q, asked)
		}
	}
	if q.OnlyReply && !isNumbered(words) {
		return nil, false
	}
	if len(words) == 0 {
		return c.help(ctx, nil), q.Addressed
	}
	command, known := find(list(c), words[0].text)
	if !known {
		return plainf("Unknown command %s. Say %s for a list.", Code(words[0].text), Code("help")), addressed
	}
	words = words[1:]
	if !addressed && (command.arguments == "") != (len(words) == 0) {
		return nil, false // people talking: "status of the release?"
	}
	run, refusal, meant := c.prepare(ctx, command, q.Room, text, words)
	if !meant && (!addressed || refusal != nil) {
		return refusal, addressed
	}
	if command.changes {
		if ctx, refusal = c.asOperator(ctx, q, command.name); refusal != nil {
			return refusal, true
		}
	}
	return run(ctx).clip(), true
}

// prepare returns what runs a command, or why it cannot run. meant is whether what follows it makes sense: if not,
// people may be talking to each other.
func (c *commands) prepare(ctx context.Context, command command, room, text string, words []word) (
	run func(context.Context) Message, refusal Message, meant bool,
) {
	switch {
	case command.story != nil:
		target := c.target(ctx, command, words)
		run, meant = func(ctx context.Context) Message { return c.onStory(ctx, command, target) }, target.named()
	case command.room != nil:
		run = func(ctx context.Context) Message { return command.room(ctx, room, words) }
		meant = filterCommands{c}.isFilter(words)
	case command.asked != nil:
		asked, answer, err := answerCommands{c}.numbered(ctx, text)
		if domain.CodeOf(err) == domain.Invalid {
			refusal = usage(command.usage())
		} else if err != nil {
			refusal = c.failed(ctx, err)
		}
		run, meant = func(ctx context.Context) Message { return command.asked(ctx, asked, answer) }, err == nil
	default:
		run, meant = func(ctx context.Context) Message { return command.run(ctx, words) }, true
	}
	return run, refusal, meant
}

// asOperator returns a context for what the sender changes, or the refusal if the sender may change nothing.
func (c *commands) asOperator(ctx context.Context, q Question, command string) (context.Context, Message) {
	if !slices.Contains(c.Operators, q.Sender) {
		c.Log.InfoContext(ctx, "bot: command refused", "command", command, "sender", q.Sender)
		return ctx, plainf("Sorry, only operators may use %s. An administrator can add your user id, %s, to %s.",
			Code(command), Code(q.Sender), Code("bot.operators"))
	}
	c.Log.InfoContext(ctx, "bot: command", "command", command, "sender", q.Sender)
	return domain.WithActor(ctx, &domain.Actor{
		Who: Short(q.Sender, MaxName), Via: domain.ViaBot, Role: domain.RoleOperator,
		Account: "chat " + q.Sender, Channel: domain.ChannelBot,
		RequestID: domain.ActorOf(ctx).RequestID,
	}), nil
}

func (c *commands) help(context.Context, []word) Message {
	m := Message{{Plain("I post the projects' events, and understand these commands:")}}
	for _, command := range list(c) {
		line := Line{Code(command.usage()), Plain(" – " + command.help)}
		if command.changes {
			line = append(line, Plain(" (operators)"))
		}
		m = append(m, line)
	}
	return m
}

func usage(text string) Message { return plainf("Usage: %s", Code(text)) }

// failed says why a command failed. The cause of an internal error is only logged.
func (c *commands) failed(ctx context.Context, err error) Message {
	if ctx.Err() != nil { // Slack does not wait for long
		return plainf("Failed: it took too long. Try again in a moment.")
	}
	if domain.CodeOf(err) == domain.Internal {
		c.Log.ErrorContext(ctx, "bot: command failed", "error", err)
	}
	return plainf("Failed: %s", domain.MessageOf(err))
}

// word is a part of a command; a quoted one is never a keyword.
type word struct {
	text   string
	quoted bool
}

// quotes maps opening to closing quotes, as people and chat programs write them.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`', '\'': '\'', '‘': '’'}

// split splits text at white space outside quotes.
func split(text string) []word {
	var words []word
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		first := []rune(text)[0]
		if closing, ok := quotes[first]; ok {
			rest := text[len(string(first)):]
			if quoted, after, found := strings.Cut(rest, string(closing)); found {
				words = append(words, word{quoted, true})
				text = after
				continue
			}
		}
		end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\u00a0", r) })
		if end < 0 {
			end = len(text)
		}
		words = append(words, word{text[:end], false})
		text = text[end:]
	}
	return words
}

// join joins words into one name: names may contain spaces.
func join(words []word) string {
	return strings.Join(domain.Map(words, func(w word) string { return w.text }), " ")
}
