package console

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/views"
)

const (
	// shownQuestions is how many questions the page shows, storyQuestions a story's page.
	shownQuestions, storyQuestions = 50, 5
)

// Questions is the page where people answer.
func (c *Console) Questions(w http.ResponseWriter, r *http.Request) error {
	state := r.URL.Query().Get("state")
	if state != "" && state != "open" && state != "all" {
		return domain.Errorf(domain.Invalid, "state: must be open or all")
	}
	query := web.ParseQuery(r)
	p := views.QuestionsProps{All: state == "all", Settled: query.Number("settled", 0, 0, math.MaxInt64), Now: now()}
	if err := query.Err(); err != nil {
		return err
	}
	var err error
	if p.Answered, err = c.service.Questions.AnsweredWithin(r.Context()); err != nil {
		return err
	}
	newest, err := c.service.Questions.List(r.Context(), "", false, shownQuestions)
	if err != nil {
		return err
	}
	if p.All {
		for _, q := range newest {
			p.Questions = append(p.Questions, c.questionProps(r, q, views.QuestionsURL+"?state=all"))
		}
	} else {
		p.Ended, p.EndedMore = endedToday(newest, p.Now)
		if !wantsPart(r) {
			for _, q := range c.service.Questions.Recent() {
				if q.State != domain.QuestionOpen {
					p.Settled = max(p.Settled, q.Ended.UnixMilli())
				}
			}
		}
		settled := func(q domain.Question) bool {
			return q.State != domain.QuestionOpen && q.Ended.UnixMilli() <= p.Settled
		}
		for _, of := range []func(domain.Question) bool{
			func(q domain.Question) bool { return !settled(q) }, settled,
		} {
			list, more, err := c.recentQuestions(r, of, shownQuestions-len(p.Questions), views.QuestionsURL)
			if err != nil {
				return err
			}
			p.Questions, p.More = append(p.Questions, list...), p.More+more
		}
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: p.Title(), Sheet: "yard.css", Scripts: []string{"questions.js"}},
		part:  views.QuestionsPart(p),
	})
}

// endedToday returns those of the newest questions that ended today, latest first, and whether there may be others.
func endedToday(newest []domain.Question, now time.Time) (ended []domain.Question, more bool) {
	today := domain.StartOfDay(now)
	for _, q := range newest {
		if q.State != domain.QuestionOpen && !q.Ended.Before(today) {
			ended = append(ended, q)
		}
	}
	slices.SortStableFunc(ended, func(a, b domain.Question) int { return b.Ended.Compare(a.Ended) })
	return ended, len(newest) == shownQuestions && len(ended) > 0
}

func (c *Console) questionProps(r *http.Request, q domain.Question, next string) views.QuestionProps {
	p := views.QuestionProps{Question: q, Next: next, Now: now()}
	if q.State != domain.QuestionOpen {
		return p
	}
	if err := c.service.Questions.MayAnswer(domain.ActorOf(r.Context()), q); err != nil {
		p.Refusal = domain.MessageOf(err)
	}
	if q.Tool != nil && q.Tool.Cut { // to be allowed it must be shown in full
		if whole, err := c.service.Questions.Get(r.Context(), q.ID); err == nil {
			p.Question = whole
		}
	}
	if q.StoryID != "" {
		item, stage := c.service.Pipelines.Known(q.Project, q.StoryID)
		p.Story, p.Stage = item, stage.Name
	}
	if one, known := c.service.Sessions.Asking(q); known {
		p.Branch, p.Own = one.Branch, one.AgentID == ""
	}
	if a, known := c.service.Agents.Find(q.AgentID); known && a.Presence != domain.AgentAlive {
		p.Silent = a.LastSeen
	}
	return p
}

// recentQuestions returns the first questions that are open or have just ended, in full, and how many more are open.
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

// inlineActions returns what can be done on the lines of the first open alerts.
func (c *Console) inlineActions(r *http.Request, alerts domain.Alerts) views.InlineActions {
	first := alerts.Items[:min(len(alerts.Items), alerts.Open)]
	return views.InlineActions{Asked: c.firstQuestions(r, first), Failed: c.failedMerges(r, first)}
}

// ofKind returns the first visible alerts of a kind.
func ofKind(alerts []domain.Alert, kind domain.AlertKind) (found []domain.Alert) {
	for _, a := range alerts {
		if a.Kind == kind && len(found) < views.ShownAlerts {
			found = append(found, a)
		}
	}
	return found
}

// failedMerges returns the stories of the first failed merges that the reader can retry, going by their boards.
func (c *Console) failedMerges(r *http.Request, alerts []domain.Alert) map[string]domain.Story {
	found := map[string]domain.Story{}
	if !web.InfoOf(r.Context()).Role.Allows(domain.RoleOperator) {
		return found
	}
	for _, a := range ofKind(alerts, domain.AlertMerge) {
		if c.service.Pipelines.Takes(a.Project, a.Story) {
			found[a.Key()] = domain.Story{
				Project: a.Project, ID: a.Story.StoryID, MergeFailure: a.Story.MergeFailure,
				File: &domain.StoryFile{Version: a.Story.Version, Writable: true},
			}
		}
	}
	return found
}

// firstQuestions returns the first questions among open alerts, in full, as far as they can be read now.
func (c *Console) firstQuestions(r *http.Request, alerts []domain.Alert) map[int64]views.QuestionProps {
	found := map[int64]views.QuestionProps{}
	for _, a := range ofKind(alerts, domain.AlertQuestion) {
		q, err := c.service.Questions.Get(r.Context(), a.Question)
		if err == nil && q.State == domain.QuestionOpen { // the others are shown as alerts
			found[q.ID] = c.questionProps(r, q, "")
		}
	}
	return found
}

func (c *Console) AnswerQuestion(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	var asked domain.Question
	if err == nil {
		asked, err = c.service.Questions.Get(r.Context(), id)
	}
	if err == nil {
		given := domain.Answer{Value: fields.Get("value"), Text: fields.Get("text")}
		if choices := asked.Choices(); choices != nil {
			given.Answers = readChoices(choices, fields)
		} else if option, ok := asked.Option(fields.Get("option")); ok {
			given.Value = option
		}
		_, err = c.service.Questions.Answer(r.Context(), id, given)
	}
	notice := views.Notice{}
	if domain.CodeOf(err) == domain.Conflict {
		said, _ := domain.Expose(domain.MessageOf(err))
		notice, err = views.Notice{Text: views.Sentence(said), Signal: views.SignalCaution}, nil
	}
	return c.done(w, r, localPath(fields.Get("next")), notice, err, "This question is gone.")
}

// readChoices returns a form's answer to each choice: the numbers of options, and the reader's own text, which for a
// single choice counts if no option is picked.
func readChoices(choices []domain.Choice, fields url.Values) map[string]domain.ChoiceAnswer {
	answers := map[string]domain.ChoiceAnswer{}
	for i, c := range choices {
		n, labels := strconv.Itoa(i), c.Labels()
		for _, value := range fields["pick"+n] {
			if option, err := strconv.Atoi(value); err == nil && option > 0 && option <= len(labels) {
				answers[c.Prompt] = append(answers[c.Prompt], labels[option-1])
			}
		}
		own := strings.TrimSpace(fields.Get("own" + n))
		if own != "" && (c.Multiple || len(answers[c.Prompt]) == 0) {
			answers[c.Prompt] = append(answers[c.Prompt], own)
		}
	}
	return answers
}
