package pvwriter

import (
	"strings"
	"testing"
)

func TestEnumValuesHaveDistinctNames(t *testing.T) {
	person, controller := ChosenByPerson.String(), ChosenByController.String()
	if person == controller || strings.HasPrefix(person, "invalid") || strings.HasPrefix(controller, "invalid") {
		t.Errorf("names = %q, %q", person, controller)
	}
}
