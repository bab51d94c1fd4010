package api

import (
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
	q, err = a.service.Questions.Ask(r.Context(), q, life)
	return answer(w, http.StatusCreated, wire.NewQuestion(q), err)
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
	return answer(w, http.StatusOK, map[string]any{"questions": domain.Each(found, wire.NewQuestion)}, err)
}

// Question returns a question, with wait once it is no longer open.
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
	value, text := b.Text("value"), wire.Text(b.OptionalText("text"))
	if err := b.Err(); err != nil {
		return err
	}
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	q, err := a.service.Questions.Answer(r.Context(), id, value, text)
	return answer(w, http.StatusOK, wire.NewQuestion(q), err)
}

func (a *API) WithdrawQuestion(w http.ResponseWriter, r *http.Request) error {
	id, err := service.ParseQuestionID(web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	return noContent(w, a.service.Questions.Withdraw(r.Context(), id))
}

// ClaudeCodeHook holds Claude Code's PermissionRequest hook until people have answered, and answers in its form. Other
// hook events get an empty answer.
func (a *API) ClaudeCodeHook(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	event := b.Text("hook_event_name")
	if err := b.Err(); err != nil {
		return err
	}
	if event != "PermissionRequest" {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	use := domain.ToolUse{Name: b.Text("tool_name"), CWD: b.OptionalText("cwd")}
	use.Input, _ = b.Raw("tool_input")
	session := wire.Text(b.OptionalText("session_id"))
	if err := b.Err(); err != nil {
		return err
	}
	ctx, release, err := a.held.Hold(r)
	if err != nil {
		return err
	}
	defer release()
	key := ""
	if session != "" {
		key = service.ToolKey("hook", session, use.Name, string(use.Input))
	}
	decision, err := a.service.Questions.Permission(r.Context(), ctx, use, key)
	if err != nil {
		return err
	}
	type decided struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message,omitempty"`
	}
	type output struct {
		Event    string  `json:"hookEventName"`
		Decision decided `json:"decision"`
	}
	behavior := domain.Deny
	if decision.Allowed {
		behavior = domain.Allow
	}
	return answer(w, http.StatusOK, map[string]any{
		"hookSpecificOutput": output{event, decided{behavior, decision.Message}},
	}, nil)
}
