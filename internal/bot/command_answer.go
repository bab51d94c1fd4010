package bot

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"switchyard/internal/domain"
)

// answerCommands answers the questions of agents.
type answerCommands struct{ *commands }

// about returns the open or just ended question that a message asks, false if it asks none.
func (c answerCommands) about(ctx context.Context, message string) (asked domain.Question, ok bool) {
	known, err := Load(ctx, c.State, questionPostsKey, questionPosts{})
	if err != nil {
		c.Log.ErrorContext(ctx, "bot: which question a message asks", "error", err)
		return asked, false
	}
	i := slices.IndexFunc(known.Messages, func(m postedMessage) bool { return m.ID == message })
	if i < 0 {
		return asked, false
	}
	asked, err = c.gateway.Questions.Get(ctx, known.Messages[i].Question)
	return asked, err == nil
}

// answerThread answers a question by a reply to the message that asks it, or by a reaction.
func (c answerCommands) answerThread(ctx context.Context, q Question, asked domain.Question) (Message, bool) {
	text, recognized := q.Text, true
	if q.Reaction != "" {
		text, recognized = reactionValue(asked, q.Reaction)
	} else if _, _, isAnswer := asked.ParseAnswer(text); !q.Addressed {
		// People talk in threads: what is not an answer, or not from somebody who may answer, is not for the bot.
		recognized = isAnswer && slices.Contains(c.Operators, q.Sender) &&
			(asked.State == domain.QuestionOpen || asked.Kind != domain.QuestionText)
	}
	if !recognized {
		return nil, false
	}
	ctx, refusal := c.asOperator(ctx, q, "answer")
	if refusal != nil {
		return refusal, true
	}
	return c.answerQuestion(ctx, asked, text).clip(), true
}

// reactionValue returns the value that a reaction stands for: 👍 and 👎 for a permission, a digit for an option.
func reactionValue(asked domain.Question, reaction string) (value string, ok bool) {
	reaction = strings.Map(func(r rune) rune {
		if r == '\ufe0f' || r == '\u20e3' || r >= 0x1f3fb && r <= 0x1f3ff { // variants of an emoji, skin tones
			return -1
		}
		return r
	}, reaction)
	switch {
	case reaction == "👍" && asked.Kind == domain.QuestionPermission:
		return domain.Allow, true
	case reaction == "👎" && asked.Kind == domain.QuestionPermission:
		return domain.Deny, true
	case len(reaction) == 1:
		return asked.Option(reaction)
	}
	return "", false
}

func isNumbered(words []word) bool {
	return len(words) > 1 && strings.EqualFold(words[0].text, "answer") && isNumber(words[1].text)
}

// numbered reads answer N VALUE [TEXT] and returns the answer as written. It returns Invalid without a number, and
// NotFound for an unknown one.
func (c answerCommands) numbered(ctx context.Context, text string) (asked domain.Question, answer string, err error) {
	_, text = cutWord(text)
	number, answer := cutWord(text)
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return asked, "", domain.Errorf(domain.Invalid, "a question has a number")
	}
	asked, err = c.gateway.Questions.Get(ctx, id)
	return asked, answer, err
}

func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimSpace(text[end:])
}

// answerQuestion answers a question for the actor of ctx. What was not shown here in full cannot be allowed.
func (c answerCommands) answerQuestion(ctx context.Context, asked domain.Question, text string) Message {
	value, rest, ok := asked.ParseAnswer(text)
	if !ok && len(asked.Choices()) > 1 {
		m := plainf("Several questions are answered together, in the console.")
		return append(m, Line{c.links.question(asked.ID)})
	}
	if !ok {
		m := plainf("That is no answer to question %s. It may be:", strconv.FormatInt(asked.ID, 10))
		if asked.Kind == domain.QuestionText {
			return usage("answer " + strconv.FormatInt(asked.ID, 10) + " TEXT")
		}
		for i, option := range asked.Options {
			m = append(m, Line{Plain(strconv.Itoa(i+1) + " "), Code(option)})
		}
		return m
	}
	if _, whole := c.links.asks(asked); !whole && asked.Kind == domain.QuestionPermission && value == domain.Allow {
		return plainf("Not allowed: this is too long to be shown here. Read it in the console, and allow it there.")
	}
	if _, err := c.gateway.Questions.Answer(ctx, asked.ID, domain.Answer{Value: value, Text: rest}); err != nil {
		return c.failed(ctx, err)
	}
	return plainf("Question %s is answered: %s.", strconv.FormatInt(asked.ID, 10), Code(value))
}
