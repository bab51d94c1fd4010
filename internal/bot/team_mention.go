package bot

import (
	"context"
	"regexp"
	"strings"

	"switchyard/internal/domain"
)

// mention is a question from a channel, with its text as Slack writes it.
type mention struct {
	Question
	channel, thread string
}

// take queues a mention unless its event was received before. The event is recorded first: a crash may lose a command, which
// its sender notices, but must not run it twice.
func (t *team) take(ctx context.Context, event string, m mention) error {
	t.accepting.Lock()
	defer t.accepting.Unlock()
	if len(t.mentions) == cap(t.mentions) {
		return domain.Errorf(domain.Unavailable, "too many mentions are waiting for an answer")
	}
	first, err := t.state.RecordBotRequest(ctx, "event "+event)
	if err == nil && first {
		t.mentions <- m
	}
	return err
}

// marked matches the mentions and links in Slack's texts: <@U1>, <#C1|general>, <http://a.example|a>.
var marked = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)

// unmarked returns a text as it was typed, without the mention of the bot.
func (t *team) unmarked(text string) string {
	t.mu.Lock()
	user := t.user
	t.mu.Unlock()
	text = marked.ReplaceAllStringFunc(text, func(mark string) string {
		parts := marked.FindStringSubmatch(mark)
		switch {
		case user != "" && parts[1] == "@"+user:
			return " "
		case parts[2] != "":
			return parts[2]
		}
		return strings.TrimLeft(parts[1], "@#!")
	})
	return strings.TrimLeft(unescape(text), " :,")
}

func unescape(text string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}
