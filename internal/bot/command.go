package bot

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// commands answers what people ask, the same on every chat network.
type commands struct {
	gateway   Gateway
	operators []string
	log       *slog.Logger
}

// command is one thing that the bot understands.
type command struct {
	name, arguments, help string
	changes               bool // needs an operator
	run                   func(c *commands, ctx context.Context, words []word) Message
}

// list is a function because help refers to it.
func list() []command {
	return []command{
		{"help", "", "what I understand", false, (*commands).help},
		{"status", "", "what needs attention", false, (*commands).status},
		{"projects", "", "every project and its stages", false, (*commands).projects},
		{"agents", "", "the agents that are alive", false, (*commands).agents},
		{"events", "", "the latest events", false, (*commands).events},
		{"switch", "NAME", "make a project the active one", true, (*commands).switchTo},
		{"assign", "AGENT NAME|none", "send an agent to a project, or to none", true, (*commands).assign},
	}
}

// maxLines is the number of entries that an answer lists at most.
const maxLines = 25

// answer parses and runs a command. What is none gets an answer only where the bot was addressed.
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
		return Message{{Plain("I do not know "), Code(short(words[0].text, maxName)), Plain(". Say "), Code("help"), Plain(" for what I understand.")}}, addressed
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

// word is a part of a command; a quoted one is never a keyword.
type word struct {
	text   string
	quoted bool
}

// quotes are the pairs that people and their chat programs write around names.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`', '\'': '\'', '‘': '’'}

// split cuts text at white space, but not within quotes.
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

// join makes one name of words: names may hold spaces.
func join(words []word) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}

func (c *commands) help(context.Context, []word) Message {
	m := Message{{Plain("I post what happens in the projects, and I understand:")}}
	for _, command := range list() {
		usage := strings.TrimSpace(command.name + " " + command.arguments)
		line := Line{Code(usage), Plain(" " + command.help)}
		if command.changes {
			line = append(line, Plain(" (operators)"))
		}
		m = append(m, line)
	}
	return m
}

func (c *commands) switchTo(ctx context.Context, words []word) Message {
	name := join(words)
	if name == "" {
		return usage("switch NAME")
	}
	if err := c.gateway.Switch(ctx, name); err != nil {
		return c.failed(ctx, err)
	}
	return Message{{Plain("The active project is now "), Bold(name), Plain(".")}}
}

func (c *commands) assign(ctx context.Context, words []word) Message {
	agents, rest := c.findAgents(words)
	if len(words) < 2 || len(agents) == 1 && len(rest) == 0 {
		return usage("assign AGENT NAME|none")
	}
	switch len(agents) {
	case 0:
		return Message{{Plain("There is no agent "), Code(short(words[0].text, maxName)), Plain(". "), Code("agents"), Plain(" lists them.")}}
	case 1:
	default:
		m := Message{{Plain("Several agents are called so; name one by its id:")}}
		for _, a := range agents {
			m = append(m, Line{Code(a.ID)})
		}
		return m
	}
	var project *string
	if name := join(rest); len(rest) > 1 || rest[0].quoted || !strings.EqualFold(name, "none") {
		project = &name
	}
	agent, err := c.gateway.AssignAgent(ctx, agents[0].ID, project)
	if err != nil {
		return c.failed(ctx, err)
	}
	if project == nil {
		return Message{{Bold(agent.Label), Plain(" is now assigned to no project.")}}
	}
	return Message{{Bold(agent.Label), Plain(" is now assigned to "), Bold(*project), Plain(".")}}
}

// findAgents returns the agents whose id or label words begin with, the longest match, and the words after it.
func (c *commands) findAgents(words []word) ([]domain.Agent, []word) {
	all := c.gateway.Agents()
	for n := len(words); n > 0; n-- {
		name := join(words[:n])
		var found []domain.Agent
		for _, a := range all {
			if a.ID == name {
				return []domain.Agent{a}, words[n:]
			}
			if a.Label == name {
				found = append(found, a)
			}
		}
		if len(found) > 0 {
			return found, words[n:]
		}
	}
	return nil, words
}

func usage(text string) Message {
	return Message{{Plain("It goes like this: "), Code(text)}}
}

// failed says why a change was refused; what is not for people goes to the log.
func (c *commands) failed(ctx context.Context, err error) Message {
	if domain.CodeOf(err) == domain.Internal {
		c.log.ErrorContext(ctx, "bot: command failed", "error", err)
	}
	return Message{{Plain("That did not work: " + short(domain.MessageOf(err), maxReason))}}
}

func (c *commands) events(ctx context.Context, _ []word) Message {
	events, err := c.gateway.Events(ctx, domain.EventQuery{Backward: true, Limit: 10})
	if err != nil {
		return c.failed(ctx, err)
	}
	if len(events) == 0 {
		return Message{{Plain("Nothing has happened yet.")}}
	}
	slices.Reverse(events)
	m := Message{{Bold("Latest events"), Plain(" (UTC)")}}
	for _, e := range events {
		at := time.UnixMilli(e.TimestampMS).UTC().Format("2 Jan 15:04")
		m = append(m, append(Line{Plain(at + " ")}, describe(e)...))
	}
	return m
}

func (c *commands) agents(context.Context, []word) Message {
	agents := c.gateway.Agents()
	if len(agents) == 0 {
		return Message{{Plain("No agent is alive.")}}
	}
	m := Message{{Bold(plural(int64(len(agents)), "agent", "agents"))}}
	for i, a := range agents {
		if i == maxLines {
			m = append(m, Line{Plain(fmt.Sprintf("and %d more", len(agents)-i))})
			break
		}
		line := Line{Bold(short(a.Label, maxName)), Plain(" "), Code(a.ID), Plain(" " + string(a.State) + ", ")}
		if a.AssignedProject == nil {
			line = append(line, Plain("unassigned"))
		} else {
			line = append(line, Plain("assigned to "), Bold(short(*a.AssignedProject, maxName)))
		}
		m = append(m, line)
	}
	return m
}
