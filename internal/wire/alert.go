package wire

import "switchyard/internal/domain"

// Alert is an alert as the API and webhooks show it. Fields that do not apply to its kind are null.
type Alert struct {
	Key          string           `json:"key"`
	Kind         domain.AlertKind `json:"kind"`
	Project      *string          `json:"project"`
	Agent        *string          `json:"agent"`
	StoryID      *string          `json:"story_id"`
	StoryName    *string          `json:"story_name"`
	Stage        *string          `json:"stage"`
	Text         string           `json:"text"`
	SinceMS      int64            `json:"since_ms"`
	Link         string           `json:"link"` // the console's page about it
	Acknowledged *Acknowledgement `json:"acknowledged"`
}

type Acknowledgement struct {
	By      string `json:"by"`
	AtMS    int64  `json:"at_ms"`
	UntilMS *int64 `json:"until_ms"` // null until the alert ends
}

func NewAlert(a domain.Alert) Alert {
	encoded := Alert{
		Key: a.Key(), Kind: a.Kind, Project: OrNull(a.Project), Agent: OrNull(a.Agent), Stage: OrNull(a.Stage),
		Text: a.Text(), SinceMS: a.Since.UnixMilli(), Link: a.Link(),
	}
	if a.Target != "" {
		encoded.Agent = nil
	}
	if a.Story != nil {
		encoded.StoryID, encoded.StoryName = &a.Story.StoryID, &a.Story.StoryName
	}
	if k := a.Acknowledged; k != nil {
		encoded.Acknowledged = &Acknowledgement{k.By, k.At.UnixMilli(), TimeOrNull(k.Until)}
	}
	return encoded
}
