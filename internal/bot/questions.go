package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const (
	// questionPostsKey is the key in State of what is known about messages that ask questions.
	questionPostsKey = "bot.questions"
	// maxPosted is how many such messages are known at once. Further questions are posted once others have ended.
	maxPosted = 1000
	// askPause is how often the bot looks for rooms that lack an open question.
	askPause = 10 * time.Second
)

// questionPosts says which message asks which question.
type questionPosts struct {
	Account  string          `json:"account"`
	Messages []postedMessage `json:"messages"`
}

type postedMessage struct {
	Question int64  `json:"question"`
	Room     string `json:"room"`
	ID       string `json:"id"` // "" if the room refused it
}

// ask posts open questions to every room until ctx ends or a message cannot be sent.
func (b *bot) ask(ctx context.Context) error {
	known, err := Load(ctx, b.State, questionPostsKey, questionPosts{})
	if err != nil {
		return err
	}
	if account := b.chat.Account(); known.Account != account {
		known = questionPosts{Account: account}
	}
	database, err := b.Identity(ctx)
	if err != nil {
		return err
	}
	again := time.NewTicker(askPause)
	defer again.Stop()
	for {
		changed := b.gateway.Questions.Changed()
		if err := b.askOpen(ctx, database, &known); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-again.C:
		}
	}
}

// askOpen posts each open question to the rooms that do not have it.
func (b *bot) askOpen(ctx context.Context, database string, known *questionPosts) error {
	recent := b.gateway.Questions.Recent()
	known.Messages = slices.DeleteFunc(known.Messages, func(m postedMessage) bool {
		return !slices.ContainsFunc(recent, func(q domain.Question) bool { return q.ID == m.Question })
	})
	for _, open := range recent {
		if open.State != domain.QuestionOpen {
			continue
		}
		isIt := func(m postedMessage) bool { return m.Question == open.ID }
		if !slices.ContainsFunc(known.Messages, isIt) {
			if err := b.chat.Refresh(ctx); err != nil {
				return err
			}
		}
		rules, err := Load(ctx, b.State, rulesKey, roomRules{})
		if err != nil {
			return err
		}
		var message Message
		for _, room := range b.chat.Rooms() {
			if len(known.Messages) >= maxPosted {
				return nil
			}
			isHere := func(m postedMessage) bool { return isIt(m) && m.Room == room.ID }
			if slices.ContainsFunc(known.Messages, isHere) || !rules.wantsProject(room.ID, open.Project) {
				continue
			}
			if message == nil {
				q, err := b.gateway.Questions.Get(ctx, open.ID)
				if err != nil || q.State != domain.QuestionOpen {
					break // it has just ended
				}
				message, _ = links(b.PublicURL).asks(q)
			}
			key := keyOf(room.ID, fmt.Sprintf("question-%s-%d", database, open.ID))
			id, err := b.chat.Send(ctx, room.ID, key, message)
			if err != nil && !errors.Is(err, ErrRefused) {
				return err
			}
			known.Messages = append(known.Messages, postedMessage{open.ID, room.ID, id})
			if err := Save(ctx, b.State, questionPostsKey, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// The most that is shown of what a question asks about, in bytes and lines.
const maxAsked, maxAskedLines = 2800, 40

// question is a question's name, with a link to it if there is one.
func (l links) question(id int64) Span {
	number := strconv.FormatInt(id, 10)
	s := Span{Text: "Question " + number, Style: BoldStyle}
	if l != "" {
		s.Link = strings.TrimRight(string(l), "/") + "/questions#question-" + number
	}
	return s
}

// asks returns the message that asks a question. whole is false if it does not show all that the question is about.
func (l links) asks(q domain.Question) (m Message, whole bool) {
	number := strconv.FormatInt(q.ID, 10)
	head := columns(Line{Plain("? "), l.question(q.ID)}, Line{Bold(q.By)})
	if q.Project != "" {
		head = columns(head, Line{Bold(q.Project)})
	}
	if q.StoryID != "" {
		head = columns(head, Line{l.story(q.Project, q.StoryID)})
	}
	text, choices := q.Prompt, q.Choices()
	for i, c := range choices {
		if i > 0 {
			text += "\n" + c.Prompt
		}
		for n, o := range c.Options {
			text += strings.TrimRight(fmt.Sprintf("\n%d %s: %s", n+1, o.Label, o.Description), ": ")
		}
	}
	if q.Tool != nil && choices == nil {
		text += "\n" + q.Tool.Name + " " + string(q.Tool.Input)
		if q.Tool.CWD != nil {
			text += "\nin " + *q.Tool.CWD
		}
	}
	if q.Detail != "" {
		text += "\n" + q.Detail
	}
	shown, _ := domain.Expose(text)
	lines := strings.Split(domain.CutBytes(shown, maxAsked), "\n")
	whole = len(shown) <= maxAsked && len(lines) <= maxAskedLines
	m = Message{head}
	for _, line := range lines[:min(len(lines), maxAskedLines)] { // as code, so that no line looks like one of ours
		m = append(m, Line{{Text: line, Style: CodeStyle}})
	}
	answer := "answer " + number
	switch {
	case !whole && q.Kind == domain.QuestionPermission:
		return append(m, Line{
			Plain("… and more than fits here: read all of it in the console to allow it. "),
			Code(answer + " deny"), Plain(" or 👎 denies it."),
		}), false
	case !whole:
		m = append(m, Line{Plain("… and more, which the console has.")})
	}
	switch {
	case len(choices) > 1:
		return append(m, Line{Plain("These are answered together, in the console.")}), whole
	case len(choices) == 1:
		return append(m, Line{
			Code(answer + " NUMBER"), Plain(" or "), Code(answer + " TEXT"), Plain(", or a reply in this thread."),
		}), whole
	}
	switch q.Kind {
	case domain.QuestionPermission:
		return append(m, Line{
			Code(answer + " allow"), Plain(" or "), Code(answer + " deny"),
			Plain(", or a reply in this thread; on Matrix also 👍 or 👎."),
		}), whole
	case domain.QuestionChoice:
		for i, option := range q.Options {
			option, _ := domain.Expose(option)
			m = append(m, Line{Plain(strconv.Itoa(i+1) + " "), {Text: Short(option, MaxReason), Style: CodeStyle}})
		}
		return append(m, Line{Code(answer + " NUMBER"), Plain(", or a reply in this thread.")}), whole
	}
	return append(m, Line{Code(answer + " TEXT"), Plain(", or a reply in this thread.")}), whole
}
