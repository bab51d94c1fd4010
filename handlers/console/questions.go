package console

import (
	"net/http"
	"net/url"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/views"
)

const (
	// shownQuestions is how many questions the page shows, storyQuestions a story's page.
	shownQuestions, storyQuestions = 50, 5
)

// Questions is the page on which people answer.
func (c *Console) Questions(w http.ResponseWriter, r *http.Request) error {
	state := r.URL.Query().Get("state")
	if state != "" && state != "open" && state != "all" {
		return domain.Errorf(domain.Invalid, "state: must be open or all")
	}
	p := views.QuestionsProps{All: state == "all", Now: now()}
	var err error
	if p.All {
		var all []domain.Question
		all, err = c.service.Questions.List(r.Context(), "", false, shownQuestions)
		for _, q := range all {
			p.Questions = append(p.Questions, c.questionProps(r, q, views.QuestionsURL+"?state=all"))
		}
	} else {
		p.Questions, p.More, err = c.recentQuestions(r, func(domain.Question) bool { return true }, shownQuestions,
			views.QuestionsURL)
	}
	if err != nil {
		return err
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: p.Title(), Scripts: []string{"questions.js"}}, part: views.QuestionsPart(p),
		pageAround: views.Questions,
	})
}

func (c *Console) questionProps(r *http.Request, q domain.Question, next string) views.QuestionProps {
	return views.QuestionProps{
		Question: q, Next: next, Now: now(),
		MayAnswer: c.service.Questions.MayAnswer(domain.ActorOf(r.Context()), q) == nil,
	}
}

// recentQuestions returns the first questions of those that are open or have just ended, whole, and how many open ones
// there are besides.
func (c *Console) recentQuestions(
	r *http.Request, of func(domain.Question) bool, most int, next string,
) (list []views.QuestionProps, more int, err error) {
	for _, q := range c.service.Questions.Recent() {
		switch {
		case !of(q):
		case len(list) < most:
			if q, err = c.service.Questions.Get(r.Context(), q.ID); err != nil {
				return nil, 0, err
			}
			list = append(list, c.questionProps(r, q, next))
		case q.State == domain.QuestionOpen:
			more++
		}
	}
	return list, more, nil
}

// AnswerQuestion takes the form that answers a question.
func (c *Console) AnswerQuestion(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	var asked domain.Question
	if err == nil {
		asked, err = c.service.Questions.Get(r.Context(), id)
	}
	if err == nil {
		value := fields.Get("value")
		if option, ok := asked.Option(fields.Get("option")); ok {
			value = option
		}
		_, err = c.service.Questions.Answer(r.Context(), id, value, fields.Get("text"))
	}
	notice := views.Notice{}
	if domain.CodeOf(err) == domain.Conflict {
		said, _ := domain.Expose(domain.MessageOf(err))
		notice, err = views.Notice{Text: views.Sentence(said), Caution: true}, nil
	}
	return c.done(w, r, localPath(fields.Get("next")), notice, err, "This question is gone.")
}
