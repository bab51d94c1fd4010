package console

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

const (
	// shownDeliveries is how many attempts a failing target shows.
	shownDeliveries = 4
	// shownWhole is for how many targets each message is shown, and how many wait; others show hours.
	shownWhole = 100
)

// Notifications is the page: administrators see the targets, everybody their own devices.
func (c *Console) Notifications(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var form *views.TargetForm
	if web.InfoOf(r.Context()).Role.Allows(domain.RoleAdmin) && !wantsPart(r) {
		switch id, kind := query.Get("edit"), query.Get("kind"); {
		case id != "":
			t, err := c.service.Targets.Get(r.Context(), id)
			if err != nil {
				return err
			}
			form = &views.TargetForm{ID: t.ID, Name: t.Name, Rules: t.Rules}
		case views.IsTargetKind(kind):
			form = views.NewTargetForm(kind, zoneName(r))
		}
	}
	return c.showNotifications(w, r, form, views.GivenToken{}, nil)
}

// zoneName returns the name of the reader's time zone, UTC if it has none.
func zoneName(r *http.Request) string {
	if name := zone(r).String(); name != "Local" && name != "" {
		return name
	}
	return "UTC"
}

// showNotifications shows the page, with a form that was refused, or with a new secret. It returns a refusal that is
// not the form's fault.
func (c *Console) showNotifications(w http.ResponseWriter, r *http.Request, form *views.TargetForm,
	given views.GivenToken, refused error,
) error {
	if refused != nil && form.Error.Message == "" {
		return refused
	}
	p := views.NotificationsProps{
		Log: r.URL.Query().Get("log"), Form: form, Given: given, Projects: c.projectNames(), Now: now(),
	}
	v := view{
		frame:  views.Frame{Title: "Notifications", Sheet: "yard.css", Page: views.PageNotify},
		status: web.StatusOf(refused), once: given.Token != "" || form != nil && form.Tested.Text != "",
	}
	v.frame.Scripts = []string{"push.js"}
	own, others, err := c.service.Push.Devices(r.Context())
	if err != nil {
		return err
	}
	device := views.Device(own, domain.Map(others, func(t domain.Target) views.OthersDevice {
		return views.OthersDevice{Target: t, Owner: c.service.Push.OwnerOf(t)}
	}), p.Now)
	v.page = views.Notifications(p, device)
	if web.InfoOf(r.Context()).Role.Allows(domain.RoleAdmin) {
		if err := c.targetRows(r, &p); err != nil {
			return err
		}
		v.part = views.NotificationsPart(p)
	}
	return c.render(w, r, v)
}

// targetRows puts the targets into p, with what happened to their messages.
func (c *Console) targetRows(r *http.Request, p *views.NotificationsProps) error {
	ctx, targets, deliveries := r.Context(), c.service.Targets, c.service.Deliveries
	list, err := targets.List(ctx)
	if err != nil {
		return err
	}
	hours, err := deliveries.Hours(ctx, clock.Now().Add(-24*time.Hour))
	if err != nil {
		return err
	}
	domain.SortFirst(list, func(t domain.Target) bool { return t.Failing() })
	waiting, more, err := deliveries.Waiting(ctx, list[:min(shownWhole, len(list))])
	if err != nil {
		return err
	}
	byTarget := map[string][]domain.DeliveryHour{}
	for _, h := range hours {
		byTarget[h.Target] = append(byTarget[h.Target], h)
	}
	for i, t := range list {
		row := views.TargetRow{
			Target: t, Shown: targets.Shown(t.URL), Hours: byTarget[t.ID], Waiting: waiting[t.ID], WaitsMore: more[t.ID],
			Zone: t.Rules.Zone(),
		}
		if i < shownWhole || p.Log == t.ID {
			if row.Recent, err = deliveries.List(ctx, t.ID, domain.MaxDeliveries); err != nil {
				return err
			}
		}
		if p.Log == t.ID {
			row.Deliveries = row.Recent
		} else if t.Failing() {
			row.Deliveries = row.Recent[:min(shownDeliveries, len(row.Recent))]
		}
		if t.Rules.Digest != domain.NoDigest || t.Rules.Quiet != nil {
			if row.LastDigest, err = deliveries.LastDigest(ctx, t.ID, clock.Now()); err != nil {
				return err
			}
		}
		p.Targets = append(p.Targets, row)
	}
	return nil
}

// AddTarget takes the form that adds a target. A webhook's secret is shown once, in the answer.
func (c *Console) AddTarget(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	t, form := targetForm(fields)
	t.Enabled = true
	added, err := c.service.Targets.Add(r.Context(), t)
	if form.Error = fieldError(err); err != nil {
		return c.showNotifications(w, r, form, views.GivenToken{}, err)
	}
	return c.showStoredTarget(w, r, added.Name, added.Secret, added.Name+" is added. Test says whether a message arrives.")
}

// showStoredTarget shows the page with a new secret, or redirects to it with a notice if there is none.
func (c *Console) showStoredTarget(
	w http.ResponseWriter, r *http.Request, name string, secret domain.Secret, said string,
) error {
	if secret != "" {
		return c.showNotifications(w, r, nil, views.GivenToken{Name: name, Token: secret}, nil)
	}
	return c.notices.redirect(w, r, views.NotificationsURL, views.Notice{Text: said})
}

// ChangeTarget takes the form that changes a target.
func (c *Console) ChangeTarget(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	before, err := c.service.Targets.Get(r.Context(), web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	t, form := targetForm(fields)
	t.Enabled, form.ID, form.Kind = before.Enabled, before.ID, ""
	_, secret, err := c.service.Targets.Change(r.Context(), before.ID, t)
	if form.Error = fieldError(err); err != nil {
		return c.showNotifications(w, r, form, views.GivenToken{}, err)
	}
	return c.showStoredTarget(w, r, t.Name, secret, "The changes are saved.")
}

// DoTarget does what a button of a target says.
func (c *Console) DoTarget(w http.ResponseWriter, r *http.Request) error {
	id, ctx, targets := web.PathParam(r, "id"), r.Context(), c.service.Targets
	t, err := targets.Get(ctx, id)
	if err != nil {
		return c.done(w, r, views.NotificationsURL, views.Notice{}, err, "This target is gone.")
	}
	notice := views.Notice{}
	switch web.PathParam(r, "do") {
	case "test":
		notice.Text = "A test message to " + t.Name + " was accepted."
		if err = targets.Test(ctx, id); domain.CodeOf(err) == domain.BadGateway {
			notice = views.Notice{
				Text:   "The test message to " + t.Name + " was not accepted: " + views.Sentence(domain.MessageOf(err)),
				Signal: views.SignalStop,
			}
			err = nil
		}
	case "resend":
		notice.Text = "The last messages to " + t.Name + " are sent again."
		err = targets.Resend(ctx, id)
	case "retry":
		notice.Text = "The next message to " + t.Name + " is tried at once."
		_, _, err = targets.Change(ctx, id, domain.Target{Name: t.Name, Rules: t.Rules, Enabled: t.Enabled})
	case "on", "off":
		t.Enabled = web.PathParam(r, "do") == "on"
		notice.Text = t.Name + " is turned off. Nothing is lost: it goes on where it stopped."
		notice.Undo = views.Undo{URL: views.TargetURL(id) + "/on"}
		if t.Enabled {
			notice.Text, notice.Undo.URL = t.Name+" is turned on.", views.TargetURL(id)+"/off"
		}
		_, _, err = targets.Change(ctx, id, domain.Target{Name: t.Name, Rules: t.Rules, Enabled: t.Enabled})
	case "secret":
		secret, err := targets.NewSecret(ctx, id)
		if err != nil {
			return err
		}
		return c.showStoredTarget(w, r, t.Name, secret, "")
	case "remove":
		notice.Text = t.Name + " is removed."
		err = targets.Remove(ctx, id)
	default:
		return domain.Errorf(domain.NotFound, "A target has no such button.")
	}
	return c.done(w, r, views.NotificationsURL, notice, err, "This target is gone.")
}

// TestTarget sends a test message to the target in the form for adding one, and shows the form again.
func (c *Console) TestTarget(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	t, form := targetForm(fields)
	sent, err := c.service.Targets.TestFirst(r.Context(), t)
	form.Error = fieldError(err)
	switch {
	case err == nil:
		form.Tested.Text = fmt.Sprintf("A test arrived: %d after %d ms", sent.Status, sent.Took.Milliseconds())
	case domain.CodeOf(err) == domain.BadGateway:
		why := views.Sentence(domain.MessageOf(err))
		form.Tested = views.Notice{Text: "No test arrived: " + why, Signal: views.SignalStop}
		err = nil
	}
	return c.showNotifications(w, r, form, views.GivenToken{}, err)
}

// PreviewTarget says what a target with the rules in the form would get, and would have got.
func (c *Console) PreviewTarget(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	rules := targetRules(fields)
	props := views.PreviewProps{Rules: rules}
	week, err := c.service.Deliveries.LastWeek(r.Context(), rules)
	switch {
	case err == nil:
		props.Week = &week
	case domain.CodeOf(err) != domain.Invalid: // the form says so once it is sent
		return err
	}
	return c.writeFragment(w, r, views.TargetPreview(props))
}

// targetForm reads a form: the target that it describes, and how to show it again.
func targetForm(fields url.Values) (domain.Target, *views.TargetForm) {
	name, address, rules := fields.Get("name"), fields.Get("url"), targetRules(fields)
	return domain.Target{Name: name, URL: targetAddress(address), Rules: rules},
		&views.TargetForm{Kind: fields.Get("kind"), Name: name, URL: address, Rules: rules}
}

// targetRules reads the rules in a form. The service checks them.
func targetRules(fields url.Values) domain.TargetRules {
	rules := domain.TargetRules{
		Projects: fields["projects"], Digest: domain.DigestInterval(fields.Get("digest")), DigestAt: fields.Get("digest_at"),
		TimeZone: fields.Get("time_zone"),
	}
	for _, kind := range fields["events"] {
		rules.Events = append(rules.Events, domain.EventType(kind))
	}
	for _, kind := range fields["alerts"] {
		rules.Alerts = append(rules.Alerts, domain.AlertKind(kind))
	}
	if fields.Get("quiet") != "" {
		rules.Quiet = &domain.Quiet{From: fields.Get("quiet_from"), To: fields.Get("quiet_to"), Days: fields["days"]}
	}
	return rules
}

// pastedAddresses are addresses in the form in which services offer them, and what targets call them.
var pastedAddresses = []struct {
	as *regexp.Regexp
	is string
}{
	{regexp.MustCompile(`^https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/(\d+)/([\w-]+)$`), "discord://$2@$1"},
	{regexp.MustCompile(`^https://hooks\.slack\.com/services/(\w+)/(\w+)/(\w+)$`), "slack://hook:$1-$2-$3@webhook"},
}

// targetAddress returns the address of a target as typed or pasted.
func targetAddress(text string) domain.Secret {
	for _, pasted := range pastedAddresses {
		if pasted.as.MatchString(text) {
			return domain.Secret(pasted.as.ReplaceAllString(text, pasted.is))
		}
	}
	return domain.Secret(text)
}
