package bot

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"unicode"

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
	story  func(c *commands, ctx context.Context, ref domain.StoryRef, rest []word) Message
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
		{name: "flow", arguments: "PROJECT", help: "how long its stories take", run: (*commands).flow},
		{
			name: "forecast", arguments: "PROJECT [ITEMS]", help: "how many will be finished, and when so many will be",
			run: (*commands).forecast,
		},
		{name: "story", arguments: "[PROJECT] ID", help: "what is known about a story", story: (*commands).story},
		{
			name: "ack", arguments: "[PROJECT] ID [4h]", help: "acknowledge a story's alert, for a time or until it changes",
			changes: true, story: (*commands).acknowledge, follow: [2]int{0, 1},
		},
		{
			name: "move", arguments: "[PROJECT] ID STAGE", help: "move a story to another stage",
			changes: true, story: (*commands).move, follow: [2]int{1, maxWords},
		},
		{name: "unblock", arguments: "[PROJECT] ID", help: "unblock a story", changes: true, story: (*commands).unblock},
		{name: "switch", arguments: "NAME", help: "make a project the active one", changes: true, run: (*commands).switchTo},
		{
			name: "assign", arguments: "AGENT NAME|none", help: "assign an agent to a project, or to none",
			changes: true, run: (*commands).assign,
		},
	}
}

func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.arguments) }

// find returns the command with a name, ignoring case; false if there is none.
func find(name string) (command, bool) {
	all := list()
	i := slices.IndexFunc(all, func(c command) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// IsCommand reports whether a word is the name of a command.
func IsCommand(word string) bool {
	_, ok := find(strings.TrimPrefix(word, "!"))
	return ok
}

// answer parses and runs a command. Any other text is answered only if it was addressed to the bot.
func (c *commands) answer(ctx context.Context, q Question) (Message, bool) {
	text, called := strings.CutPrefix(strings.TrimSpace(q.Text), "!")
	addressed := q.Addressed || called
	words := split(text)
	if len(words) == 0 {
		return c.help(ctx, nil), q.Addressed
	}
	command, known := find(words[0].text)
	if !known {
		return say("Unknown command %s. Say %s for a list.", Code(words[0].text), Code("help")), addressed
	}
	words = words[1:]
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
			c.log.InfoContext(ctx, "bot: command refused", "command", command.name, "sender", q.Sender)
			return say("Sorry, only operators may use %s. An administrator can add your user id, %s, to %s.",
				Code(command.name), Code(q.Sender), Code("bot.operators")), true
		}
		c.log.InfoContext(ctx, "bot: command", "command", command.name, "sender", q.Sender)
		ctx = domain.WithActor(ctx, &domain.Actor{
			Who: Short(q.Sender, MaxName), Via: domain.ViaBot, Role: domain.RoleOperator,
			Account: "chat " + q.Sender, Channel: domain.ChannelBot,
			RequestID: domain.ActorOf(ctx).RequestID,
		})
	}
	return run(c, ctx, words).clip(), true
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

func usage(text string) Message { return say("Usage: %s", Code(text)) }

// failed says why a command failed. The cause of an internal error is only logged.
func (c *commands) failed(ctx context.Context, err error) Message {
	if ctx.Err() != nil { // Slack does not wait for long
		return say("Failed: it took too long. Try again in a moment.")
	}
	if domain.CodeOf(err) == domain.Internal {
		c.log.ErrorContext(ctx, "bot: command failed", "error", err)
	}
	return say("Failed: %s", domain.MessageOf(err))
}

const (
	// maxWords is the most words that a command can have after a story.
	maxWords = 20
	// maxFound is how many results of a search for an id are considered, for stories that are on no board.
	maxFound = 50
)

// target is the result of parsing a command about a story.
type target struct {
	id      string
	stories []domain.StoryRef // more than one if the id is not enough
	rest    []word            // the words after the story
	fits    bool              // whether the number of words fits the command
	err     error
}

// named reports whether the words name a story: if not, people may be talking to each other.
func (t target) named() bool { return t.fits && len(t.stories) > 0 }

// target parses [PROJECT] ID and the words after it. A project's name needs no quotes: the longest that leaves enough
// words counts.
func (c *commands) target(ctx context.Context, command command, words []word) target {
	project, known := "", c.gateway.Projects.Registry()
	for n := len(words) - 1 - command.follow[0]; n > 0; n-- {
		if _, found := known.Find(join(words[:n])); found {
			project, words = join(words[:n]), words[n:]
			break
		}
	}
	if len(words) == 0 {
		return target{}
	}
	t := target{id: words[0].text, rest: words[1:]}
	t.fits = len(t.rest) >= command.follow[0] && len(t.rest) <= command.follow[1]
	if t.fits {
		t.stories, t.err = c.findStories(ctx, project, t.id)
	}
	return t
}

// findStories returns the stories with an id, in one project or, for "", in all. Stories on a board come first; a
// number matches ids that begin with it, unless it is an id itself.
func (c *commands) findStories(ctx context.Context, project, id string) ([]domain.StoryRef, error) {
	isOther := func(ref domain.StoryRef) bool {
		return project != "" && ref.Project != project ||
			ref.ID != id && !(isNumber(id) && strings.HasPrefix(ref.ID, id+"_"))
	}
	var board []domain.StoryRef
	_, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	for _, p := range pipelines {
		for _, stage := range p.Stages {
			for _, item := range stage.Items {
				ref := domain.StoryRef{Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: stage.Name}
				if !isOther(ref) {
					board = append(board, ref)
				}
			}
		}
	}
	if len(board) > 0 {
		return exact(board, id), nil
	}
	gone, err := c.gateway.Search.Stories(ctx, id, maxFound)
	if err != nil && domain.CodeOf(err) != domain.Invalid { // too long to be searched for
		return nil, err
	}
	gone = exact(slices.DeleteFunc(gone, isOther), id)
	if len(gone) == 0 && project != "" {
		gone = []domain.StoryRef{{Project: project, ID: id}} // the project may have a story that the search does not find
	}
	return gone, nil
}

// exact returns the stories with exactly this id, or, if there are none, all.
func exact(list []domain.StoryRef, id string) []domain.StoryRef {
	isOther := func(ref domain.StoryRef) bool { return ref.ID != id }
	if found := slices.DeleteFunc(slices.Clone(list), isOther); len(found) > 0 {
		return found
	}
	return list
}

func isNumber(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
}

// onStory runs a command on the one story that its words name, or says what is wrong with them.
func (c *commands) onStory(ctx context.Context, command command, t target) Message {
	switch {
	case !t.fits:
		return usage(command.usage())
	case t.err != nil:
		return c.failed(ctx, t.err)
	case len(t.stories) == 0:
		return say("No project has a story %s.", Code(t.id))
	case len(t.stories) > 1:
		m := say("There are several; give the project and the full id:")
		return appendLines(m, t.stories, len(t.stories), func(s domain.StoryRef) Line {
			line := columns(Line{Code(s.Project), Plain(" "), Code(s.ID)})
			if s.Name != "" {
				line = columns(line, Line{Plain(Short(s.Name, MaxName))})
			}
			return columns(line, Line{Plain(cmp.Or(stageTitle(s.Stage), "not on the board"))})
		})
	}
	return command.story(c, ctx, t.stories[0], t.rest)
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
	var texts []string
	for _, w := range words {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}
