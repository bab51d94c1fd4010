package api

import (
	"encoding/json"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func (a *API) AskQuestion(w http.ResponseWriter, r *http.Request) error {
	q, life, err := newQuestion(web.DecodeJSON(w, r, web.MaxBody))
	if err != nil {
		return err
	}
	q.Lasting = true
	q, err = a.service.Questions.Ask(r.Context(), q, life)
	status := http.StatusCreated
	if q.Again {
		status = http.StatusOK
	}
	return answer(w, status, wire.NewQuestion(q), err)
}

func newQuestion(b *web.Body) (q domain.Question, life time.Duration, err error) {
	q = domain.Question{
		Project: wire.Text(b.OptionalText("project")), StoryID: wire.Text(b.OptionalText("story_id")),
		Kind: domain.QuestionKind(b.Text("kind")), Prompt: b.Text("prompt"), Detail: wire.Text(b.OptionalText("detail")),
		Options: b.OptionalTexts("options"),
	}
	expires := b.OptionalText("expires_in")
	if b.Err() != nil || expires == nil {
		return q, 0, b.Err()
	}
	if life, err = time.ParseDuration(*expires); err != nil || life <= 0 {
		return q, 0, domain.Errorf(domain.Invalid, "expires_in: must be a duration of up to 24h, such as 30m")
	}
	return q, life, nil
}

func (a *API) ListQuestions(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	limit := query.Number("limit", 100, 1, 200)
	state := query.Get("state")
	if err := query.Err(); err != nil {
		return err
	}
	if query.Has("state") && state != "open" && state != "all" {
		return domain.Errorf(domain.Invalid, "state: must be open or all")
	}
	found, err := a.service.Questions.List(r.Context(), query.Get("project"), state != "all", int(limit))
	return answer(w, http.StatusOK, map[string]any{"questions": domain.Map(found, wire.NewQuestion)}, err)
}

// Question returns a question; with wait, once it is no longer open.
func (a *API) Question(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	wait := min(query.Wait(), web.MaxHeldWait)
	if err := query.Err(); err != nil {
		return err
	}
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	ctx, release, err := a.held.HoldFor(r, wait)
	if err != nil {
		return err
	}
	defer release()
	q, err := a.service.Questions.Wait(ctx, id, wait)
	return answer(w, http.StatusOK, wire.NewQuestion(q), err)
}

// AnswerQuestion answers a question; the first answer wins.
func (a *API) AnswerQuestion(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	given := domain.Answer{Text: wire.Text(b.OptionalText("text"))}
	answers, isPicked := b.Raw("answers")
	if !isPicked {
		given.Value = b.Text("value")
	}
	if err := b.Err(); err != nil {
		return err
	}
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	if isPicked && json.Unmarshal(answers, &given.Answers) != nil {
		return domain.Errorf(domain.Invalid, "answers: must be an object with a text or a list of texts for each question")
	}
	q, err := a.service.Questions.Answer(r.Context(), id, given)
	return answer(w, http.StatusOK, wire.NewQuestion(q), err)
}

func (a *API) WithdrawQuestion(w http.ResponseWriter, r *http.Request) error {
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	return noContent(w, a.service.Questions.Withdraw(r.Context(), id))
}
