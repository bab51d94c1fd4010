package wire

import "switchyard/internal/domain"

// Review is the last verdict on the work on a story.
type Review struct {
	Verdict   domain.Verdict `json:"verdict"`
	By        string         `json:"by"`
	Via       domain.Channel `json:"via"`
	AtMS      int64          `json:"at_ms"`
	Head      string         `json:"head"`
	Note      *string        `json:"note"`
	Outdated  bool           `json:"outdated"`
	TakenAtMS *int64         `json:"taken_at_ms"`
}

// NewReview returns nil, which is null in JSON, for none.
func NewReview(r *domain.Review) *Review {
	if r == nil {
		return nil
	}
	return &Review{
		r.Verdict, r.By, r.Via, r.At.UnixMilli(), r.Head, OrNull(r.Note), r.Outdated, TimeOrNull(r.TakenAt),
	}
}
