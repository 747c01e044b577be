package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"belay/model"
)

// Models asks the server for the names of its models, sorted.
func (e *Endpoint) Models(ctx context.Context, path string, header http.Header) ([]string, error) {
	resp, err := e.Do(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, e.Fail(resp)
	}
	body, err := ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil || (list.Data == nil && list.Models == nil) {
		return nil, &model.Error{Class: model.Environment, Kind: model.Server, Status: resp.StatusCode,
			Message: fmt.Sprintf("%s: what answers at %s lists no models", e.Provider, e.shown())}
	}
	names := []string{}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	for _, m := range list.Models {
		names = append(names, strings.TrimPrefix(m.Name, "models/"))
	}
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names, func(s string) bool { return s == "" })), nil
}
