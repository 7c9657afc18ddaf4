"""Tests of what the rules make of their attributes, which run nothing: providers, command lines, inputs, errors."""

load("//bazel:info.bzl", "AotModelInfo")

_ActionsInfo = provider(doc = "What a target does.", fields = {"actions": "list of Action"})

def _actions_impl(target, _ctx):
    return [_ActionsInfo(actions = target.actions)]

_actions = aspect(implementation = _actions_impl)

def _subject(ctx):
    """An attribute with a transition is a list."""
    return ctx.attr.subject[0] if type(ctx.attr.subject) == "list" else ctx.attr.subject

def _result(ctx, problems):
    return [AnalysisTestResultInfo(success = not problems, message = "%s: %s" % (ctx.label, "; ".join(problems)))]

def _sources_impl(ctx):
    problems = []
    subject = _subject(ctx)
    model = subject[AotModelInfo]
    if model.target != ctx.attr.target:
        problems.append("target is %s, not %s" % (model.target, ctx.attr.target))
    groups = subject[OutputGroupInfo]
    made = {
        "hdrs": [model.header],
        "metadata": [model.metadata],
        "report": [model.report],
        "srcs": [model.source],
    }
    for group, files in made.items():
        if getattr(groups, group).to_list() != files:
            problems.append("the output group %s is not %s" % (group, files))
    parameters = [file.basename for file in groups.params.to_list()]
    if parameters != ctx.attr.params or parameters != ([model.params.basename] if model.params else []):
        problems.append("params are %s" % parameters)

    (action,) = [one for one in subject[_ActionsInfo].actions if one.mnemonic == "AotModelCompile"]
    arguments = action.argv[action.argv.index("compile") + 1:]
    if "--quiet" not in arguments:
        problems.append("the action is not quiet: %s" % arguments)
    arguments = arguments[arguments.index("-o"):]
    expected = ["-o", model.source.dirname, "--name=" + model.name, "--target=" + model.target, "--report=" + model.report.path]
    if arguments != expected + ctx.attr.arguments:
        problems.append("the arguments are %s" % arguments)
    inputs = [file.basename for file in action.inputs.to_list()]
    for name in ctx.attr.inputs + ["versions.json", "__main__.py"]:
        if name not in inputs:
            problems.append("%s is no input" % name)
    return _result(ctx, problems)

def _attributes(transition):
    return {
        "arguments": attr.string_list(),
        "inputs": attr.string_list(),
        "params": attr.string_list(),
        "subject": attr.label(aspects = [_actions], cfg = transition, mandatory = True),
        "target": attr.string(mandatory = True),
    }

_CORTEX_M4 = analysis_test_transition(settings = {"//command_line_option:platforms": str(Label("//toolchains/bazel:cortex-m4"))})
_FLAG = analysis_test_transition(settings = {str(Label("//bazel:target")): "cortex-m0,optimize=size"})
_FAILURE = analysis_test_transition(settings = {"//command_line_option:allow_analysis_failures": "True"})

sources_test = rule(_sources_impl, analysis_test = True, attrs = _attributes("target"))
sources_on_cortex_m4_test = rule(_sources_impl, analysis_test = True, attrs = _attributes(_CORTEX_M4))
sources_by_flag_test = rule(_sources_impl, analysis_test = True, attrs = _attributes(_FLAG))

def _failure_impl(ctx):
    messages = [cause.message for cause in _subject(ctx)[AnalysisFailureInfo].causes.to_list()]
    return _result(ctx, [] if [one for one in messages if ctx.attr.message in one] else ["fails with %s" % messages])

failure_test = rule(
    _failure_impl,
    analysis_test = True,
    attrs = {
        "message": attr.string(mandatory = True),
        "subject": attr.label(cfg = _FAILURE, mandatory = True),
    },
)
