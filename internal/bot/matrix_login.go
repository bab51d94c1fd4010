package bot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"switchyard/internal/domain"
)

func (m *matrix) mac(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(m.password.Reveal()))
	return hex.EncodeToString(mac.Sum(nil))
}

// logIn gets a new token in place of stale, for the same device, unless somebody else just did.
func (m *matrix) logIn(ctx context.Context, stale string) error {
	m.login.Lock()
	defer m.login.Unlock()
	m.mu.Lock()
	client, session := m.client, m.session
	m.mu.Unlock()
	if session.Token != stale {
		return nil
	}
	request := map[string]any{
		"type":                        "m.login.password",
		"identifier":                  map[string]string{"type": "m.id.user", "user": m.username},
		"password":                    m.password.Reveal(),
		"initial_device_display_name": "Switchyard",
	}
	if session.DeviceID != "" {
		request["device_id"] = session.DeviceID
	}
	var answer struct {
		UserID   string `json:"user_id"`
		DeviceID string `json:"device_id"`
		Token    string `json:"access_token"`
	}
	err := obeying(ctx, func() error {
		return client.do(ctx, matrixCall{method: http.MethodPost, path: "/v3/login", body: request, answer: &answer})
	})
	if err != nil {
		return m.loginFailure(err)
	}
	if answer.Token == "" || answer.UserID == "" || answer.DeviceID == "" {
		return domain.Errorf(domain.BadGateway, "The homeserver's answer to the login is incomplete.")
	}
	return m.change(ctx, func(s *matrixSession) {
		if s.UserID != answer.UserID { // somebody else's rooms and position mean nothing
			*s = matrixSession{Rooms: map[string]matrixRoom{}}
		}
		s.UserID, s.DeviceID, s.Token, s.PasswordMAC = answer.UserID, answer.DeviceID, answer.Token, m.mac(answer.Token)
	})
}

func (m *matrix) loginFailure(err error) error {
	var refused *matrixError
	switch {
	case !errors.As(err, &refused) || refused.status >= http.StatusInternalServerError:
		return explainMatrix(err)
	case refused.code == "M_FORBIDDEN":
		return domain.WrapError(domain.Unauthorized, err, "The homeserver refuses this user name or password. Check Bot username and Password, and save.")
	case refused.code == "M_USER_DEACTIVATED":
		return domain.WrapError(domain.Unauthorized, err, "This account is deactivated. Enter another one and save.")
	}
	return domain.WrapError(domain.Unauthorized, err, fmt.Sprintf(
		"The homeserver refuses a login with a password: %s %s.", refused.code, refused.message))
}

// call makes a call within the session. It obeys rate limits, and logs in again once when the token is not valid any more.
func (m *matrix) call(ctx context.Context, call matrixCall) error {
	for again := false; ; again = true {
		m.mu.Lock()
		client, token := m.client, m.session.Token
		m.mu.Unlock()
		if client == nil {
			return domain.Errorf(domain.BadGateway, "The bot is not connected.")
		}
		call.token = domain.Secret(token)
		err := obeying(ctx, func() error {
			ctx, cancel := context.WithTimeout(ctx, callLimit)
			defer cancel()
			return client.do(ctx, call)
		})
		var refused *matrixError
		if again || !errors.As(err, &refused) || refused.code != "M_UNKNOWN_TOKEN" {
			return err
		}
		if err := m.logIn(ctx, token); err != nil {
			return err
		}
	}
}
