"""The registry of all papers that the package cites, by the keys that docstrings use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ldpopt.errors import invalid

__all__ = ["REFERENCES", "Reference", "cite_with", "cited", "reference", "registered_sources"]


@dataclass(frozen=True)
class Reference:
    """A paper: the `key` cited in docstrings as ``[key, Thm 5]``, and enough to find it.

    >>> print(reference("SPR"))
    [SPR] Elena Ghazi. Sort, Partition, Randomize: Optimal Binary Hypothesis Testing under LDP. arXiv 2606.07443, 2026.
    """

    key: str
    authors: str
    title: str
    venue: str
    year: int

    @property
    def bibtex(self) -> str:
        """A BibTeX entry."""
        kind, where = next(entry for pattern, *entry in _ENTRIES if re.match(pattern, self.venue))
        return (
            f"@{kind}{{{self.key},\n  author = {{{' and '.join(self.authors.split(', '))}}},\n"
            f"  title = {{{self.title}}},\n  {where} = {{{self.venue}}},\n  year = {{{self.year}}}\n}}"
        )

    def __str__(self) -> str:
        title = self.title if self.title.endswith("?") else f"{self.title}."
        return f"[{self.key}] {self.authors}. {title} {self.venue}, {self.year}."


_ENTRIES = (
    ("arXiv", "misc", "howpublished"),
    ("Wiley|Springer|SIAM,|Studies", "book", "publisher"),
    ("ACM|AISTATS|CRYPTO|ICML|IEEE [A-Z]{3}|NDSS|NeurIPS|TCC|USENIX", "inproceedings", "booktitle"),
    ("", "article", "journal"),
)
"""What a venue begins with, the kind of its BibTeX entries, and the field that names it."""

_ALL = [
    ("GI", "Elena Ghazi, Ibrahim Issa", "Total Variation Meets Differential Privacy",
     "IEEE Journal on Selected Areas in Information Theory", 2024),
    ("BS", "Mark Bun, Thomas Steinke",
     "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", "TCC", 2016),
    ("M", "Ilya Mironov", "Rényi Differential Privacy", "IEEE CSF", 2017),
    ("CIM", "Kamalika Chaudhuri, Jacob Imola, Ashwin Machanavajjhala", "Capacity Bounded Differential Privacy",
     "NeurIPS", 2019),
    ("DR", "Cynthia Dwork, Guy Rothblum", "Concentrated Differential Privacy", "arXiv 1603.01887", 2016),
    ("KOV14", "Peter Kairouz, Sewoong Oh, Pramod Viswanath", "Extremal Mechanisms for Local Differential Privacy",
     "Journal of Machine Learning Research", 2016),
    ("KOV15", "Peter Kairouz, Sewoong Oh, Pramod Viswanath", "The Composition Theorem for Differential Privacy", "ICML",
     2015),
    ("SPR", "Elena Ghazi", "Sort, Partition, Randomize: Optimal Binary Hypothesis Testing under LDP",
     "arXiv 2606.07443", 2026),
    ("Chernoff", "Herman Chernoff",
     "A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the Sum of Observations",
     "Annals of Mathematical Statistics", 1952),
    ("DJW", "John Duchi, Michael Jordan, Martin Wainwright", "Local Privacy and Statistical Minimax Rates", "IEEE FOCS",
     2013),
    ("AZ", "Shahab Asoodeh, Huanyu Zhang", "Contraction of Locally Differentially Private Mechanisms",
     "arXiv 2210.13386", 2022),
    ("ALCKS", "Shahab Asoodeh, Jiachun Liao, Flavio Calmon, Oliver Kosut, Lalitha Sankar",
     "A Better Bound Gives a Hundred Rounds: Enhanced Privacy Guarantees via f-Divergences", "IEEE ISIT", 2020),
    ("BW", "Borja Balle, Yu-Xiang Wang",
     "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and Optimal Denoising", "ICML",
     2018),
    ("BBGN", "Borja Balle, James Bell, Adrià Gascón, Kobbi Nissim", "The Privacy Blanket of the Shuffle Model",
     "CRYPTO", 2019),
    ("WangVR", "Shaowei Wang, Yun Peng, Jin Li, Zikai Wen, Zhipeng Li, Shiyu Yu, Di Wang, Wei Yang",
     "Privacy Amplification via Shuffling: Unified, Simplified, and Tightened", "VLDB", 2024),
    ("FMT", "Vitaly Feldman, Audra McMillan, Kunal Talwar",
     "Stronger Privacy Amplification by Shuffling for Rényi and Approximate Differential Privacy",
     "arXiv 2208.04591", 2022),
    ("SCW", "Pengcheng Su, Haibo Cheng, Ping Wang",
     "Decomposition-Based Optimal Bounds for Privacy Amplification via Shuffling", "arXiv 2504.07414", 2025),
    ("KHH", "Antti Koskela, Mikko Heikkilä, Antti Honkela",
     "Numerical Accounting in the Shuffle Model of Differential Privacy",
     "Transactions on Machine Learning Research", 2023),
    ("BCO", "Leighton Pate Barnes, Wei-Ning Chen, Ayfer Özgür", "Fisher Information under Local Differential Privacy",
     "arXiv 2005.10783", 2020),
    ("Steinberger", "Lukas Steinberger", "Efficiency in Local Differential Privacy", "arXiv 2301.10600", 2023),
    ("AFT", "Hilal Asi, Vitaly Feldman, Kunal Talwar",
     "Optimal Algorithms for Mean Estimation under Local Differential Privacy", "ICML", 2022),
    ("Bobkov", "Sergey Bobkov",
     "An Isoperimetric Inequality on the Discrete Cube, and an Elementary Proof of the Isoperimetric Inequality in "
     "Gauss Space", "Annals of Probability", 1997),
    ("Talagrand", "Michel Talagrand", "How Much Are Increasing Sets Positively Correlated?", "Combinatorica", 1996),
    ("MTZ", "Ilya Mironov, Kunal Talwar, Li Zhang", "Rényi Differential Privacy of the Sampled Gaussian Mechanism",
     "arXiv 1908.10530", 2019),
    ("TW", "Lloyd N. Trefethen, J. A. C. Weideman", "The Exponentially Convergent Trapezoidal Rule",
     "SIAM Review 56", 2014),
    ("DGKKM", "Vadym Doroshenko, Badih Ghazi, Pritish Kamath, Ravi Kumar, Pasin Manurangsi",
     "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", "PoPETs", 2022),
    ("ZDW", "Yuqing Zhu, Jinshuo Dong, Yu-Xiang Wang",
     "Optimal Accounting of Differential Privacy via Characteristic Function", "AISTATS", 2022),
    ("DRS", "Jinshuo Dong, Aaron Roth, Weijie Su", "Gaussian Differential Privacy",
     "Journal of the Royal Statistical Society B", 2022),
    ("PAL", "Hyun-Young Park, Shahab Asoodeh, Si-Hyeon Lee",
     "Exactly Minimax-Optimal Locally Differentially Private Sampling", "NeurIPS", 2024),
    ("YB", "Min Ye, Alexander Barg", "Optimal Schemes for Discrete Distribution Estimation under LDP",
     "IEEE Transactions on Information Theory", 2018),
    ("CKS", "Clément Canonne, Gautam Kamath, Thomas Steinke", "The Discrete Gaussian for Differential Privacy",
     "NeurIPS", 2020),
    ("RRUV", "Ryan Rogers, Aaron Roth, Jonathan Ullman, Salil Vadhan",
     "Privacy Odometers and Filters: Pay-as-you-Go Composition", "NeurIPS", 2016),
    ("FZ", "Vitaly Feldman, Tijana Zrnic", "Individual Privacy Accounting via a Rényi Filter", "NeurIPS", 2021),
    ("WRRW", "Justin Whitehouse, Aaditya Ramdas, Ryan Rogers, Zhiwei Steven Wu",
     "Fully-Adaptive Composition in Differential Privacy", "ICML", 2023),
    ("KW", "Jack Kiefer, Jacob Wolfowitz", "The Equivalence of Two Extremum Problems",
     "Canadian Journal of Mathematics", 1960),
    ("HK", "Rainer Hettich, Kenneth Kortanek", "Semi-Infinite Programming: Theory, Methods, and Applications",
     "SIAM Review", 1993),
    ("CCP", "Alan Yuille, Anand Rangarajan", "The Concave-Convex Procedure", "Neural Computation", 2003),
    ("BCP", "Nicolás Bordenabe, Konstantinos Chatzikokolakis, Catuscia Palamidessi",
     "Optimal Geo-Indistinguishable Mechanisms for Location Privacy", "ACM CCS", 2014),
    ("Shor", "Naum Shor", "Quadratic Optimization Problems", "Soviet Journal of Computer and Systems Sciences", 1987),
    ("Huber", "Peter Huber", "Robust Estimation of a Location Parameter", "Annals of Mathematical Statistics", 1964),
    ("Scarf", "Herbert Scarf", "A Min-Max Solution of an Inventory Problem",
     "Studies in the Mathematical Theory of Inventory and Production, Stanford University Press", 1958),
    ("WSR", "Ian Waudby-Smith, Aaditya Ramdas", "Estimating Means of Bounded Random Variables by Betting",
     "Journal of the Royal Statistical Society B", 2024),
    ("WSWR", "Ian Waudby-Smith, Zhiwei Steven Wu, Aaditya Ramdas",
     "Nonparametric Extensions of Randomized Response for Private Confidence Sets", "ICML", 2023),
    ("Kish", "Leslie Kish", "Survey Sampling", "Wiley", 1965),
    ("BM", "Robert Bell, Daniel McCaffrey",
     "Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples", "Survey Methodology", 2002),
    ("BCD", "Lawrence Brown, T. Tony Cai, Anirban DasGupta", "Interval Estimation for a Binomial Proportion",
     "Statistical Science", 2001),
    ("Newcombe", "Robert Newcombe", "Interval Estimation for the Difference between Independent Proportions",
     "Statistics in Medicine", 1998),
    ("Zou", "Guang Yong Zou", "Toward Using Confidence Intervals to Compare Correlations", "Psychological Methods",
     2007),
    ("SSW", "Carl-Erik Särndal, Bengt Swensson, Jan Wretman", "Model Assisted Survey Sampling", "Springer", 1992),
    ("Wolter", "Kirk Wolter", "Introduction to Variance Estimation", "Springer, second edition", 2007),
    ("RaoWu", "J. N. K. Rao, C. F. J. Wu", "Resampling Inference with Complex Survey Data",
     "Journal of the American Statistical Association", 1988),
    ("DemingStephan", "W. Edwards Deming, Frederick Stephan",
     "On a Least Squares Adjustment of a Sampled Frequency Table When the Expected Marginal Totals Are Known",
     "Annals of Mathematical Statistics", 1940),
    ("DevilleSarndal", "Jean-Claude Deville, Carl-Erik Särndal", "Calibration Estimators in Survey Sampling",
     "Journal of the American Statistical Association", 1992),
    ("CDM", "Stephen Clark, Robert Desharnais",
     "Honest Answers to Embarrassing Questions: Detecting Cheating in the Randomized Response Model",
     "Psychological Methods", 1998),
    ("CDMsym", "Martin Ostapczuk, Morten Moshagen, Zengmei Zhao, Jochen Musch",
     "Assessing Sensitive Attributes Using the Randomized Response Technique: "
     "Evidence for the Importance of Response Symmetry",
     "Journal of Educational and Behavioral Statistics", 2009),
    ("SLD", "Morten Moshagen, Jochen Musch, Edgar Erdfelder", "A Stochastic Lie Detector", "Behavior Research Methods",
     2012),
    ("HHM", "Daniel Heck, Adrian Hoffmann, Morten Moshagen",
     "Detecting Nonadherence without Loss in Efficiency: A Simple Extension of the Crosswise Model",
     "Behavior Research Methods", 2018),
    ("SelfLiang", "Steven Self, Kung-Yee Liang",
     "Asymptotic Properties of Maximum Likelihood Estimators and Likelihood Ratio Tests under Nonstandard Conditions",
     "Journal of the American Statistical Association", 1987),
    ("ImbensManski", "Guido Imbens, Charles Manski", "Confidence Intervals for Partially Identified Parameters",
     "Econometrica", 2004),
    ("Fieller", "Edgar Fieller", "Some Problems in Interval Estimation", "Journal of the Royal Statistical Society B",
     1954),
    ("HBW", "Torsten Hothorn, Frank Bretz, Peter Westfall", "Simultaneous Inference in General Parametric Models",
     "Biometrical Journal", 2008),
    ("DLR", "Arthur Dempster, Nan Laird, Donald Rubin", "Maximum Likelihood from Incomplete Data via the EM Algorithm",
     "Journal of the Royal Statistical Society B", 1977),
    ("VR", "Ravi Varadhan, Christophe Roland",
     "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM Algorithm",
     "Scandinavian Journal of Statistics", 2008),
    ("Efron", "Bradley Efron", "Bootstrap Methods: Another Look at the Jackknife", "Annals of Statistics", 1979),
    ("VHG", "Ardo van den Hout, Peter van der Heijden, Robert Gilchrist",
     "The Logistic Regression Model with Response Variables Subject to Randomized Response",
     "Computational Statistics and Data Analysis", 2007),
    ("BIZ", "Graeme Blair, Kosuke Imai, Yang-Yang Zhou", "Design and Analysis of the Randomized Response Technique",
     "Journal of the American Statistical Association", 2015),
    ("Woodruff", "Ralph Woodruff", "Confidence Intervals for Medians and Other Position Measures",
     "Journal of the American Statistical Association", 1952),
    ("PM", "Ning Wang, Xiaokui Xiao, Yin Yang, Jun Zhao, Siu Cheung Hui, Hyejin Shin, Junbum Shin, Ge Yu",
     "Collecting and Analyzing Multidimensional Data with Local Differential Privacy", "IEEE ICDE", 2019),
    ("SW", "Zitao Li, Tianhao Wang, Milan Lopuhaä-Zwakenberg, Ninghui Li, Boris Skoric",
     "Estimating Numerical Distributions under Local Differential Privacy", "ACM SIGMOD", 2020),
    ("DSSC", "John Duchi, Shai Shalev-Shwartz, Yoram Singer, Tushar Chandra",
     "Efficient Projections onto the L1-Ball for Learning in High Dimensions", "ICML", 2008),
    ("Consistency", "Tianhao Wang, Milan Lopuhaä-Zwakenberg, Zitao Li, Boris Skoric, Ninghui Li",
     "Locally Differentially Private Frequency Estimation with Consistency", "NDSS", 2020),
    ("PRAM", "José Gouweleeuw, Peter Kooiman, Leon Willenborg, Peter-Paul de Wolf",
     "Post Randomisation for Statistical Disclosure Control: Theory and Implementation",
     "Journal of Official Statistics", 1998),
    ("FS", "James Falk, Richard Soland", "An Algorithm for Separable Nonconvex Programming Problems",
     "Management Science", 1969),
    ("Sinkhorn", "Richard Sinkhorn",
     "A Relationship between Arbitrary Positive Matrices and Doubly Stochastic Matrices",
     "Annals of Mathematical Statistics", 1964),
    ("CT", "Thomas Cover, Joy Thomas", "Elements of Information Theory", "Wiley", 2006),
    ("Rao", "C. Radhakrishna Rao", "Linear Statistical Inference and its Applications", "Wiley", 1973),
    ("Dobrushin", "Roland Dobrushin", "Central Limit Theorem for Nonstationary Markov Chains",
     "Theory of Probability and its Applications", 1956),
    ("Blackwell", "David Blackwell", "Equivalent Comparisons of Experiments", "Annals of Mathematical Statistics",
     1953),
    ("Warner", "Stanley Warner", "Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias",
     "Journal of the American Statistical Association", 1965),
    ("OM", "Takuya Ooura, Masatake Mori", "A Robust Double Exponential Formula for Fourier-Type Integrals",
     "Journal of Computational and Applied Mathematics", 1999),
    ("Geometric", "Arpita Ghosh, Tim Roughgarden, Mukund Sundararajan",
     "Universally Utility-Maximizing Privacy Mechanisms", "ACM STOC", 2009),
    ("RAPPOR", "Úlfar Erlingsson, Vasyl Pihur, Aleksandra Korolova",
     "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response", "ACM CCS", 2014),
    ("LH", "Tianhao Wang, Jeremiah Blocki, Ninghui Li, Somesh Jha",
     "Locally Differentially Private Protocols for Frequency Estimation", "USENIX Security", 2017),
    ("HR", "Jayadev Acharya, Ziteng Sun, Huanyu Zhang",
     "Hadamard Response: Estimating Distributions Privately, Efficiently, and with Little Communication", "AISTATS",
     2019),
    ("Forced", "Robert Boruch", "Assuring Confidentiality of Responses in Social Research", "American Sociologist",
     1971),
    ("Unrelated", "Bernard Greenberg, Abdel-Latif Abul-Ela, Walt Simmons, Daniel Horvitz",
     "The Unrelated Question Randomized Response Model: Theoretical Framework",
     "Journal of the American Statistical Association", 1969),
    ("Kuk", "Anthony Kuk", "Asking Sensitive Questions Indirectly", "Biometrika", 1990),
    ("Crosswise", "Jun-Wu Yu, Guo-Liang Tian, Man-Lai Tang",
     "Two New Models for Survey Sampling with Sensitive Characteristic: Design and Analysis", "Metrika", 2008),
    ("RSFD", "Héber H. Arcolezi, Jean-François Couchot, Bechara Al Bouna, Xiaokui Xiao",
     "Random Sampling Plus Fake Data: Multidimensional Frequency Estimates with Local Differential Privacy",
     "ACM CIKM", 2021),
    ("Harmony", "Thông T. Nguyên, Xiaokui Xiao, Yin Yang, Siu Cheung Hui, Hyejin Shin, Junbum Shin",
     "Collecting and Analyzing Data from Smart Device Users with Local Differential Privacy", "arXiv 1606.05053", 2016),
    ("Split", "Trivellore Raghunathan, James Grizzle", "A Split Questionnaire Survey Design",
     "Journal of the American Statistical Association", 1995),
    ("HS", "Peter Huber, Volker Strassen", "Minimax Tests and the Neyman-Pearson Lemma for Capacities",
     "Annals of Statistics", 1973),
    ("OP", "Or Ordentlich, Yury Polyanskiy", "Strong Data Processing Constant Is Achieved by Binary Inputs",
     "IEEE Transactions on Information Theory", 2022),
    ("CRS", "Man-Duen Choi, Mary Beth Ruskai, Eugene Seneta",
     "Equivalence of Certain Entropy Contraction Coefficients", "Linear Algebra and its Applications", 1994),
    ("ADC", "Shahab Asoodeh, Mario Diaz, Flavio Calmon",
     "Contraction of E-gamma Divergence and Its Applications to Privacy", "arXiv 2012.11035", 2020),
    ("IWK", "Ibrahim Issa, Aaron Wagner, Sudeep Kamath", "An Operational Approach to Information Leakage",
     "IEEE Transactions on Information Theory", 2020),
    ("HIG", "Nicholas Higham", "Accuracy and Stability of Numerical Algorithms", "SIAM, second edition", 2002),
    ("ARB", "Fredrik Johansson", "Arb: Efficient Arbitrary-Precision Midpoint-Radius Interval Arithmetic",
     "IEEE Transactions on Computers", 2017),
]  # fmt: skip
"""Key, authors, title, venue and year of each paper."""

REFERENCES = {paper[0]: Reference(*paper) for paper in _ALL}


def reference(key: str) -> Reference:
    """Find the paper behind a citation key; ``"GI, Thm 5"`` finds ``GI``.

    >>> reference("GI, Thm 5").year
    2024
    """
    entry = REFERENCES.get(key.strip("[]").split(",")[0].strip())
    if entry is None:
        raise invalid("reference key", f"one of {', '.join(REFERENCES)}", key)
    return entry


_CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d*)((?:[,;] [^\]\[]*)?)\]")
_FURTHER = re.compile(r"; ([A-Z][A-Za-z]*\d*)(?=,|$)")


def cited(text: str) -> tuple[str, ...]:
    """List the registered keys that a text cites in brackets, in order, each once.

    >>> cited("A bound [DJW, Thm 1; GI, Thm 6] for every array [Any, ...].")
    ('DJW', 'GI')
    """
    keys = [key for first, rest in _CITATION.findall(text) for key in (first, *_FURTHER.findall(rest))]
    return tuple(dict.fromkeys(key for key in keys if key in REFERENCES))


_SOURCES: list[Callable[[Any], Iterable[Any] | None]] = []


def cite_with(sources: Callable[[Any], Iterable[Any] | None]) -> None:
    """Register a function that knows the sources of an application's results, for `ldpopt.cite`.

    sources : a function of a result to citations and to functions whose documentation cites papers; None for a result
        that it does not know.

    >>> cite_with(lambda result: ("[GI, Thm 5]",) if result == "a result of mine" else None)
    >>> registered_sources("a result of mine")
    ('[GI, Thm 5]',)
    """
    _SOURCES.append(sources)


def registered_sources(result: Any) -> Iterable[Any] | None:
    """Return the sources of a result from the first registered function that knows it, or None.

    >>> registered_sources(3) is None
    True
    """
    return next((listed for source_function in _SOURCES if (listed := source_function(result)) is not None), None)
