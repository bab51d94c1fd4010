package signin

import (
	"encoding/json"
	"net/url"

	"switchyard/internal/domain"
)

const authorizationCode = "authorization_code" // the grant type

// tokenRequest returns the body that exchanges a code for tokens, and its type.
func (c Config) tokenRequest(f domain.SignInFlow, code, state string) (contentType, body string) {
	if c.TokenFormat == Form {
		return "application/x-www-form-urlencoded", url.Values{
			"grant_type":    {authorizationCode},
			"code":          {code},
			"client_id":     {c.ClientID},
			"redirect_uri":  {f.RedirectURI},
			"code_verifier": {f.Verifier.Reveal()},
		}.Encode()
	}
	data, err := json.Marshal(struct {
		GrantType    string `json:"grant_type"`
		Code         string `json:"code"`
		ClientID     string `json:"client_id"`
		RedirectURI  string `json:"redirect_uri"`
		CodeVerifier string `json:"code_verifier"`
		State        string `json:"state"`
	}{authorizationCode, code, c.ClientID, f.RedirectURI, f.Verifier.Reveal(), state})
	if err != nil { // strings always encode
		panic(err)
	}
	return "application/json", string(data)
}
