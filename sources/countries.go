package sources

import "strings"

// isCountry says whether a text without a label is the name of a country, as
// English lists write them. A word that is none may be a user or a password: what
// a list says is shown.
func isCountry(text string) bool {
	var room [maxName]byte
	return countries[string(appendNormal(room[:0], text))]
}

// countries holds the names of ISO 3166-1 and what else the same are called,
// written as normal does: without spaces, signs and letters that are not ASCII.
var countries = func() map[string]bool {
	known := make(map[string]bool)
	for name := range strings.FieldsSeq(countryNames) {
		known[name] = true
	}
	return known
}()

const countryNames = `
afghanistan albania algeria americansamoa andorra angola anguilla antarctica antiguabarbuda antiguaandbarbuda argentina
armenia aruba australia austria azerbaijan bahamas thebahamas bahrain bangladesh barbados belarus belgium belize benin
bermuda bhutan bolivia bonaire bosnia bosniaherzegovina bosniaandherzegovina botswana brazil britishindianoceanterritory
britishvirginislands brunei bruneidarussalam bulgaria burkinafaso burma burundi caboverde cambodia cameroon canada
capeverde caribbeannetherlands caymanislands centralafricanrepublic chad chile china christmasisland cocosislands
cocoskeelingislands colombia comoros congo congobrazzaville congodrc congokinshasa drcongo congodemocraticrepublic
congothedemocraticrepublicofthe democraticrepublicofthecongo republicofthecongo cookislands costarica cotedivoire
ctedivoire croatia cuba curacao curaao cyprus czechia czechrepublic denmark djibouti dominica dominicanrepublic easttimor
ecuador egypt elsalvador equatorialguinea eritrea estonia eswatini ethiopia falklandislands falklandislandsmalvinas
faroeislands fiji finland france frenchguiana frenchpolynesia gabon gambia thegambia georgia germany ghana gibraltar
greatbritain greece greenland grenada guadeloupe guam guatemala guernsey guinea guineabissau guyana haiti holysee honduras
hongkong hongkongsarchina hungary iceland india indonesia iran iranislamicrepublicof islamicrepublicofiran iraq ireland
isleofman israel italy ivorycoast jamaica japan jersey jordan kazakhstan kenya kiribati korea korearepublicof
republicofkorea koreasouth southkorea northkorea kosovo kuwait kyrgyzstan laos laopeoplesdemocraticrepublic latvia lebanon
lesotho liberia libya libyanarabjamahiriya liechtenstein lithuania luxembourg macao macau macaosarchina macausarchina
macedonia northmacedonia macedoniatheformeryugoslavrepublicof madagascar malawi malaysia maldives mali malta
marshallislands martinique mauritania mauritius mayotte mexico micronesia moldova moldovarepublicof republicofmoldova
monaco mongolia montenegro montserrat morocco mozambique myanmar myanmarburma namibia nauru nepal netherlands
thenetherlands netherlandsantilles newcaledonia newzealand nicaragua niger nigeria niue norfolkisland
northernmarianaislands norway oman pakistan palau palestine palestineterritory palestinestateof palestinianterritory
palestinianterritories palestinianterritoryoccupied stateofpalestine panama papuanewguinea paraguay peru philippines
thephilippines poland portugal puertorico qatar reunion runion romania russia russianfederation rwanda saintbarthlemy
sainthelena saintkittsandnevis saintlucia saintmartin saintvincentandthegrenadines samoa sanmarino saotomeandprincipe
saudiarabia senegal serbia seychelles sierraleone singapore sintmaarten slovakia slovakrepublic slovenia solomonislands
somalia southafrica southsudan spain srilanka stkittsandnevis stlucia stvincentandthegrenadines sudan suriname swaziland
sweden switzerland syria syrianarabrepublic taiwan taiwanprovinceofchina tajikistan tanzania unitedrepublicoftanzania
tanzaniaunitedrepublicof thailand timorleste togo tokelau tonga trinidadandtobago trinidadtobago tunisia turkey turkiye
trkiye turkmenistan turksandcaicosislands tuvalu uganda uk ukraine unitedarabemirates uae unitedkingdom unitedstates
unitedstatesofamerica theunitedstates usa uruguay usvirginislands virginislands virginislandsbritish virginislandsus
uzbekistan vanuatu vatican vaticancity venezuela venezuelabolivarianrepublicof vietnam wallisandfutuna westernsahara yemen
zambia zimbabwe
`
