"""The files of a kit: complete, small, and without anything that belongs to the plan's owner alone."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from kit_plans import CLIENT, WITHOUT_NODE

from ldpopt.errors import InvalidInput
from ldpopt.exact import ExactChannel
from ldpopt_survey import QuestionSpec, SurveySpec, kit_files, plan_survey
from ldpopt_survey.kit.folder import LANGUAGES, languages, shipped_texts, untranslated_keys
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion

CHANNEL = ExactChannel([[3, 1], [1, 3]], bits=2, inputs=["no", "yes"])
PLAN = Plan('A "plan" <b>', (PlannedQuestion("vote", "vote", CHANNEL),))


def test_the_client_is_small():
    """The module that draws is at most 16 kB, and needs no other file."""
    assert CLIENT.stat().st_size <= 16_000
    assert "import" not in re.sub(r"/\*.*?\*/|//.*", "", CLIENT.read_text("utf-8"), flags=re.S).replace("importKey", "")


def test_every_file_that_the_page_names_is_there():
    """Each script, style, icon, language and import of the page is a file of the kit, and no address is foreign."""
    files = kit_files(PLAN)
    page = files["index.html"].decode()
    named = re.findall(r'(?:href|src)="([^"]+)"', page)
    named += [f"language-{code}.json" for code in re.search(r'languages" content="([^"]+)"', page)[1].split()]
    for name in [one for one in files if one.endswith(".js")]:
        named += [one.removeprefix("./") for one in re.findall(r'from "([^"]+)"', files[name].decode())]
    assert set(named) <= set(files)
    assert len(named) > 7
    addresses = {one for content in files.values() for one in re.findall(rb"https?://[^\s\"'`<]+", content)}
    assert addresses == {b"http://www.w3.org/2000/svg"}  # the name of a format, not a place to ask


def test_names_are_escaped():
    """A survey's name is text in the page, whatever it holds."""
    page = kit_files(PLAN)["index.html"].decode()
    assert "A &quot;plan&quot; &lt;b&gt;" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    ("given", "connect", "posted"),
    [
        ("./", "connect-src 'self';", "./submissions"),
        ("https://c.example", "connect-src 'self' https://c.example;", "https://c.example/submissions"),
        ("https://c.example:8443/a/", "connect-src 'self' https://c.example:8443;", "https://c.example:8443/a/submissions"),
        ("http://localhost:8000", "connect-src 'self' http://localhost:8000;", "http://localhost:8000/submissions"),
    ],
)  # fmt: skip
def test_the_collector_is_in_the_policy_and_nothing_else(given, connect, posted):
    """The page may reach its own origin and the collector's."""
    page = kit_files(PLAN, given)["index.html"].decode()
    assert connect in page
    assert f'content="{posted}"' in page


@pytest.mark.parametrize(
    "given",
    ["http://c.example", "https://", "https://*.example", "https://a b", "https://a;script-src *", "https://u@c.example",
     "https://c.example/?x=1", "https://c.example/#x", "ftp://c.example", "", "https://c.example:99999/", 'https://a"'],
)  # fmt: skip
def test_a_collector_that_could_widen_the_policy_is_refused(given):
    """Only a plain https address, or http on this machine, is written into the policy."""
    with pytest.raises(InvalidInput, match="collector: expected"):
        kit_files(PLAN, given)


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_are_complete(language):
    """Every language has every text of the first, with the same places to fill in."""
    places = re.compile(r"\{\w+\}")
    first, texts = shipped_texts(LANGUAGES[0]), shipped_texts(language)
    assert set(texts) == set(first)
    for key, text in texts.items():
        assert sorted(places.findall(text)) == sorted(places.findall(first[key])), key
    used = set(re.findall(r'word\("(\w+)"', kit_files(PLAN)["questionnaire.js"].decode()))
    assert used <= set(first)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[]", "an object with a language code as its"),
        ('{"code": "d"}', "an object with a language code as its"),
        ('{"code": "de", "nonsense": "a"}', "keys of the English texts"),
        ('{"code": "de", "progress": "{nmber}"}', "only the placeholders"),
        ('{"code": "de", "questions": {"none": {}}}', "question: expected one of"),
        ('{"code": "de", "questions": {"vote": {"answers": {"maybe": "a"}}}}', "categories of the plan"),
        ('{"code": "de", "questions": {"vote": {"answers": {"no": "a", "yes": "a"}}}}', "distinct"),
        ('{"code": "de", "direction": "up"}', "direction"),
        ('{"code": "de", "start": ""}', "a text of 1 to"),
    ],
)
def test_texts_that_do_not_fit_are_refused(given, message):
    """Unknown keys, questions, answers and places, and two answers that look the same, are refused."""
    with pytest.raises(InvalidInput, match=message):
        languages(PLAN, [given])


def test_only_the_languages_given_are_offered():
    """With texts of a survey only their languages are offered; English is there for what they lack."""
    files = kit_files(PLAN, texts=['{"code": "pt-BR", "start": "Vamos"}'])
    assert 'content="pt-BR"' in files["index.html"].decode()
    assert json.loads(files["language-pt-BR.json"]) == {"start": "Vamos"}
    assert json.loads(files["language-en.json"]) == shipped_texts("en")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("npm") is None, reason=WITHOUT_NODE)
def test_npm_packs_the_client_alone(tmp_path):
    """The folder is a package that npm takes, of the client, its types, and the description."""
    for name, content in kit_files(PLAN).items():
        (tmp_path / name).write_bytes(content)
    command = ["npm", "pack", "--dry-run", "--json", "--offline"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600)
    packed = json.loads(run.stdout)[0]
    assert {one["path"] for one in packed["files"]} == {"ldpopt-client.js", "ldpopt-client.d.ts", "package.json"}
    assert packed["name"] == "ldpopt-client"


def test_untranslated_texts_of_a_language_are_listed():
    """Texts in a language that is not shipped name every word that stays English; a shipped one has all."""
    hindi = (
        json.dumps({"code": "hi", "title": "सर्वेक्षण"}) if "title" in shipped_texts("en") else json.dumps({"code": "hi"})
    )
    lacking = untranslated_keys([hindi])["hi"]
    assert {"promiseTimes", "introChance"} <= set(lacking)
    assert set(lacking) | set(json.loads(hindi)) == set(shipped_texts("en")) | {"code"}
    whole = json.dumps({**shipped_texts("en"), "code": "pt-BR"})
    assert untranslated_keys([whole, json.dumps({"code": "de-AT", "intro": "Servus"})]) == {}
    for code in LANGUAGES:
        assert set(shipped_texts(code)) == set(shipped_texts("en"))


def test_questions_are_asked_in_the_words_of_the_plan():
    """In every language, unless its own texts have other words."""
    spec = SurveySpec("demo", (QuestionSpec("drug", ("no", "yes"), epsilon=1.0),), wording=(("drug", "Any drug?"),))
    plan = plan_survey(spec).plan
    assert {texts["questions"]["drug"]["text"] for texts in languages(plan).values()} == {"Any drug?"}
    german = json.dumps({"code": "de", "questions": {"drug": {"text": "Drogen?", "answers": {"no": "nein"}}}})
    english = json.dumps({"code": "en", "questions": {"drug": {"answers": {"yes": "aye"}}}})
    asked = {code: texts["questions"]["drug"] for code, texts in languages(plan, [german, english]).items()}
    assert asked["de"] == {"text": "Drogen?", "answers": {"no": "nein"}}
    assert asked["en"] == {"text": "Any drug?", "answers": {"yes": "aye"}}
    assert "questions" not in languages(plan_survey(replace(spec, wording=())).plan)["en"]
